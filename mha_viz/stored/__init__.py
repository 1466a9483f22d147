"""What array files hold, by their headers: nothing is made before its size is known, and no code in a file is ever run."""
