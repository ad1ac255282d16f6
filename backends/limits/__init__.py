"""How much memory a process may take, and native code that may end without taking its process along."""
