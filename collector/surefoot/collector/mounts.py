"""Which kind of file system a folder is on. A spool on a network one is refused.

Why: an acknowledgement promises that fsync reached a disk, and the lock promises one collector per spool. On network
file systems the first depends on the server's export options and the second on a lock daemon; both fail silently.
"""

from __future__ import annotations

from pathlib import Path

from surefoot.collector.errors import SpoolError

_NETWORK = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "coda", "9p", "ceph", "lustre", "gfs2"),
        *("ocfs2", "beegfs", "gpfs", "pvfs2", "orangefs", "davfs", "fuse.sshfs", "fuse.s3fs", "fuse.rclone"),
        *(
            "fuse.gcsfuse",
            "fuse.glusterfs",
            "fuse.ceph",
            "fuse.cephfs",
            "fuse.davfs2",
            "fuse.curlftpfs",
            "fuse.juicefs",
        ),
        *("fuse.blobfuse", "fuse.blobfuse2", "fuse.goofys", "fuse.mount-s3", "fuse.smbnetfs", "fuse.nfs"),
    }
)


def file_system(path: Path, mountinfo: str) -> str | None:
    """The type of the file system that an absolute path is on, by the text of ``/proc/self/mountinfo``."""
    best, kind = -1, None
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = Path(_unescaped(fields[4]))
        # A later mount on the same point hides an earlier one.
        if len(point.parts) >= best and path.is_relative_to(point):
            best, kind = len(point.parts), right.split(" ")[0]
    return kind


def refuse_network(path: Path, mountinfo: str) -> None:
    """Raise SpoolError if the folder is on a network file system."""
    kind = file_system(path, mountinfo)
    if kind in _NETWORK:
        raise SpoolError(
            f"The spool {path} is on a network file system ({kind}), where a sync and a lock do not hold what they "
            "promise. Choose a folder on a local disk with SUREFOOT_HOME or --spool, or say --spool-on-network."
        )


def mountinfo() -> str:
    """The mounts that this process sees; nothing where the system does not tell."""
    try:
        return Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
    except OSError:
        return ""


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
