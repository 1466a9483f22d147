"""Parts of pages that several share."""
