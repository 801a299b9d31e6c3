"""How good and how fast is it? Scripts that measure; nothing in service/ imports them."""
