"""What sets up, describes and packs the site. Nothing here runs in the page."""
