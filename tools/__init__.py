"""Tools that set up, describe and pack the site. Nothing here runs in the page."""
