"""A grammar of healthy training programs, each with the one thing marked that is taken out to break it."""
