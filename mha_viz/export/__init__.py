"""What leaves the app: programs that compute what it shows."""
