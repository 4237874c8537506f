"""Components that are right; components and plugins that are wrong in one realistic way each."""
