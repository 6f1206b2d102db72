"""Archives of web traffic: WARC files, WACZ packages, and what is found in them."""
