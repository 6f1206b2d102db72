"""Language models behind one small interface: what is asked, what it cost, and what came back."""
