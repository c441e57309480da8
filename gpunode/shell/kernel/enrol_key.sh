# enrol_key.sh KEY CERTIFICATE PASSWORD-FILE
#
# Queue the certificate that DKMS signs modules with for enrolment in shim's list of machine owner keys (mokutil(1)). The firmware's
# MokManager asks for a one-time password at the next boot, on the console; it is made here, and stands in PASSWORD-FILE (root
# only, gone with the reboot) and nowhere else. Both files are made where they are missing, as DKMS itself makes them.
# Exit 65: one of them is there without the other, and nothing was written: a key that the firmware knows may come back.
set -eu
umask 077
key=$1 certificate=$2 password_file=$3
there=$(for file in "$key" "$certificate"; do [ ! -e "$file" ] || echo "$file"; done)
case $there in
    "$key" | "$certificate")
        echo "$there is there, and the other of $key and $certificate is not" >&2
        exit 65
        ;;
esac
if [ -z "$there" ]; then
    mkdir -p "$(dirname "$key")" "$(dirname "$certificate")"
    openssl req -new -x509 -newkey rsa:2048 -nodes -days 36500 -subj "/CN=$(uname -n) module signing key/" \
        -addext extendedKeyUsage=codeSigning -outform DER -keyout "$key" -out "$certificate" 2>/dev/null
    chmod 644 "$certificate"
    echo "made $key"
fi
mkdir -p "$(dirname "$password_file")"
# Digits only: MokManager knows no keyboard layout but the American.
password=$(od -An -N8 -tu8 /dev/urandom | tr -d ' \n' | tail -c 8)
printf '%s\n' "$password" >"$password_file"
printf '%s\n%s\n' "$password" "$password" | mokutil --import "$certificate" >/dev/null
echo "$certificate waits for MokManager"
