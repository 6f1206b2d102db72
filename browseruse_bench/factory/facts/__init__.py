"""Facts of rubrics, checked again: in their archives, or on the site as it is today."""
