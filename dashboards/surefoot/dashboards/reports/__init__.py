"""Reports: one self-contained HTML file each."""

from surefoot.dashboards.reports.page import profile_page

__all__ = ["profile_page"]
