"""What people look at: the metrics endpoint, Prometheus rules, the Grafana dashboard, the page."""
