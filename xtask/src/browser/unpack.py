"""Downloads a package of npm's registry, checks its digest, and unpacks the browser in it.

Arguments: the folder with the wheel that unpacks Brotli, the folder to make, the address, the digest.
"""

import glob
import hashlib
import io
import os
import sys
import tarfile
import urllib.request
import zipfile

wheels, unpacked, url, digest = sys.argv[1:5]
for wheel in glob.glob(os.path.join(wheels, "*.whl")):
    zipfile.ZipFile(wheel).extractall(os.path.join(wheels, "unpacked"))
sys.path.insert(0, os.path.join(wheels, "unpacked"))
import brotli  # noqa: E402

# Where the machine has a mirror of the registry, it is named as npm itself wants it.
registry = os.environ.get("NPM_CONFIG_REGISTRY") or os.environ.get("npm_config_registry")
if registry:
    url = url.replace("https://registry.npmjs.org", registry.rstrip("/"))
package = urllib.request.urlopen(url, timeout=120).read()
found = hashlib.sha256(package).hexdigest()
if found != digest:
    sys.exit(f"{url} has the digest {found} and not {digest}")

os.makedirs(unpacked)
files = tarfile.open(fileobj=io.BytesIO(package))


def contents(name):
    return brotli.decompress(files.extractfile(f"package/bin/{name}.br").read())


for name in ["al2023.tar", "fonts.tar"]:
    with tarfile.open(fileobj=io.BytesIO(contents(name))) as part:
        for member in part.getmembers():
            # Only plain files below the folder.
            if member.isfile() and not os.path.isabs(member.name) and ".." not in member.name.split("/"):
                part.extract(member, unpacked)
with open(os.path.join(unpacked, "fonts.conf"), "w") as fonts:
    fonts.write(
        '<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n<fontconfig>'
        '<dir prefix="relative">fonts</dir><cachedir prefix="relative">fonts-cache</cachedir></fontconfig>\n'
    )
# The browser comes last: if it is there, everything is.
program = os.path.join(unpacked, "chromium")
with open(program, "wb") as out:
    out.write(contents("chromium"))
os.chmod(program, 0o755)
