"""Downloads of model files, from this site, the Hub and other hosts: one downloader for all."""
