"""Arrays and their memory: addresses, aligned buffers, DLPack, temporary buffers kept between calls."""
