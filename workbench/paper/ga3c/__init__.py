"""GA3C (Babaeizadeh et al., ICLR 2017): its tables."""
