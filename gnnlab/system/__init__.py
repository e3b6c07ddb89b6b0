"""What the library asks of the computer that it runs on: devices, screen, files, signals, exit."""
