"""Whether a client's certificate is a node's own: what NodeRestriction will refuse is then known beforehand."""

from __future__ import annotations

from gpunode.transport.secret import Secret

GROUP, USER = "system:nodes", "system:node:"


def node_of(certificate: Secret | None) -> str | None:
    """The node's name; None for another identity, or a certificate that cannot be read. `certificate`: PEM.

    As the authorization mode Node tells it: O=system:nodes, CN=system:node:NAME.
    """
    if certificate is None:
        return None
    from cryptography import x509  # paramiko brings it along

    try:
        subject = x509.load_pem_x509_certificate(certificate.reveal().encode("ascii", "replace")).subject
        groups = [str(one.value) for one in subject.get_attributes_for_oid(x509.NameOID.ORGANIZATION_NAME)]
        names = [str(one.value) for one in subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    except ValueError:
        return None
    name = names[0] if names else ""
    return name.removeprefix(USER) if GROUP in groups and name.startswith(USER) else None
