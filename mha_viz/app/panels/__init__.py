"""What the sidebar and the head of a page say of one kind of source."""
