"""Laws of mechanisms: what noise is drawn, and how loud it is."""
