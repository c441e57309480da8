# sh -s -- API HANDLER SOCKET OWNER DIRECTORY      after commands.CONTAINERS. Read-only.
# Which containers need what gpunode added. Replies "containers", then a line each: NEED, ID and NAME, with tabs between.
# NEED: handler = its runtime is HANDLER, without which it does not start again (a pod: cannot be stopped);
#       cdi = it asks for a CDI device of NVIDIA's; gpus = it was made with --gpus, which is NVIDIA's hook;
#       program = it runs by NVIDIA's program, without which nobody can exec into it or end it.
# API: docker, podman, cri, or processes (whatever runs on this host, by whichever engine). SOCKET: of the daemon, -: it is not
# to be asked. OWNER: UID:GID of a rootless one's user, -: root. DIRECTORY: where its containers are if it does not answer.
# The files of dockerd, and not its API: a daemon that is down has containers too, and one question for each takes long.

gpunode_most=500 # containers that are named

# gpunode_named: "NEED ID NAME" lines, of each id the first.
gpunode_named() {
    awk -F '\t' 'NF == 3 && !seen[$2]++' | head -n "$gpunode_most"
}

# Run with the rights of whoever owns them: DIRECTORY HANDLER. Nothing in a JSON string reads as a member: its quotes are escaped.
# shellcheck disable=SC2016
gpunode_docker_files='
LC_ALL=C; export LC_ALL
[ -e "$1/containers" ] || exit 0
cd "$1/containers" || exit 1
those() { need=$1; shift; find . -mindepth 2 -maxdepth 2 -name hostconfig.json -type f -exec grep -l "$@" {} + | sed "s|^\./|$need |"; }
{
    those handler -F "\"Runtime\":\"$2\""
    those cdi -E "\"DeviceRequests\":\[\{.*\"nvidia\.com/"
    those gpus -E "\"DeviceRequests\":\[\{.*\"(gpu|nvidia)\""
} | while read -r need path; do
    id=${path%/hostconfig.json}
    name=$(sed -n "s|.*\"Name\":\"/\([A-Za-z0-9][A-Za-z0-9_.-]*\)\".*|\1|p" "$id/config.v2.json" 2>/dev/null | head -n 1)
    printf "%s\t%s\t%s\n" "$need" "$id" "${name:-$id}"
done'

# gpunode_docker_containers HANDLER SOCKET OWNER DIRECTORY
gpunode_docker_containers() {
    gpunode_directory=
    if [ "$3" != - ]; then
        run_as_user_ready "$3" || failed "no setpriv (util-linux) here reads the containers of user ${3%:*}"
        [ "$2" = - ] || gpunode_directory=$(gpunode_their_info "$3" "$2" | gpunode_root_directory)
        # shellcheck disable=SC2034  # as_user.sh reads it
        run_as_user_bytes=262144
        run_as_user "$3" 30 sh -c "$gpunode_docker_files" sh "${gpunode_directory:-$4}" "$1" </dev/null ||
            failed "user ${3%:*} cannot read the containers in ${gpunode_directory:-$4}/containers"
        return
    fi
    [ "$2" = - ] || ! own_socket "$2" || gpunode_directory=$(gpunode_docker_info "$2" | gpunode_root_directory)
    sh -c "$gpunode_docker_files" sh "${gpunode_directory:-$4}" "$1" </dev/null 2>/dev/null ||
        failed "the containers in ${gpunode_directory:-$4}/containers cannot be read"
}

gpunode_root_directory() {
    sed -n 's/.*"DockerRootDir": *"\([^"\\]*\)".*/\1/p' | head -n 1
}

# ListPodSandboxResponse.items is field 1; of a PodSandbox 1 is the id, 2 the metadata (1 name, 3 namespace), 7 the handler.
# shellcheck disable=SC2154  # query.sh has it
gpunode_pods_client=$gpunode_cri_call'
try:
    # containerd before 1.6 has the older one alone, whose fields here are the same
    answer = call(sys.argv[1], b"/runtime.v1.RuntimeService/ListPodSandbox", b"")
    if answer is None:
        answer = call(sys.argv[1], b"/runtime.v1alpha2.RuntimeService/ListPodSandbox", b"")
except (ConnectionRefusedError, FileNotFoundError):
    sys.exit(0) # it does not run, and has none to stop
if answer is None:
    sys.exit(1)
for number, item in fields(answer):
    pod = dict(fields(item)) if number == 1 else {}
    if pod.get(7) != sys.argv[2].encode():
        continue
    about = dict(fields(pod.get(2, b"")))
    words = [b"handler", pod.get(1, b""), about.get(3, b"") + b"/" + about.get(1, b"")]
    print("\t".join(word.decode("utf-8", "replace") for word in words))
'

# gpunode_pods HANDLER SOCKET: pods that name the handler, running or not. One that does not run has none to stop.
gpunode_pods() {
    [ "$2" != - ] && own_socket "$2" || return 0
    gpunode_pods_found=$(gpunode_python "$gpunode_pods_client" "$2" "$1")
    case $? in
    0)
        [ -z "$gpunode_pods_found" ] || printf '%s\n' "$gpunode_pods_found"
        return
        ;;
    127) gpunode_tool crictl || return 0 ;;
    *) failed "the engine at $2 does not say which pods it has" ;;
    esac
    gpunode_pods_found=$(gpunode_bounded "$TOOL" --timeout 5s --runtime-endpoint "unix://$2" pods --output json </dev/null 2>/dev/null) ||
        failed "crictl pods does not answer"
    printf '%s\n' "$gpunode_pods_found" |
        awk -F '"' -v handler="$1" '
            $2 == "id" { id = $4; name = space = "" }
            $2 == "name" && name == "" { name = $4 }
            $2 == "namespace" && space == "" { space = $4 }
            $2 == "runtimeHandler" && $4 == handler { print "handler\t" id "\t" space "/" name }'
}

# gpunode_podman_containers HANDLER: of root. The first podman of root makes the storage; a question must not.
gpunode_podman_containers() {
    [ -e /var/lib/containers/storage/db.sql ] || [ -e /var/lib/containers/storage/libpod ] || return 0
    gpunode_tool podman || return 0
    gpunode_podman=$TOOL
    for gpunode_try in 1 2; do # one of them may have gone between the two questions
        gpunode_ids=$(gpunode_bounded "$gpunode_podman" ps --all --quiet </dev/null) || failed "podman ps does not answer"
        [ -n "$gpunode_ids" ] || return 0
        # shellcheck disable=SC2086  # one id a word
        gpunode_rows=$(timeout 40 "$gpunode_podman" container inspect --format "$gpunode_podman_row" $gpunode_ids </dev/null 2>/dev/null) && break
        [ "$gpunode_try" = 1 ] || failed "podman container inspect does not answer"
    done
    printf '%s\n' "$gpunode_rows" |
        awk -F '\t' -v handler="$1" '
            { typed = $4; own = "," substr($5, 2); most = length(typed) - length(own) }
            most > 0 && substr(typed, most + 1) == own { typed = substr(typed, 1, most) } # what is run in it is its own affair
            $1 == handler { print "handler\t" $2 "\t" $3; next }
            index(typed, "\"nvidia.com/") || index(typed, "=nvidia.com/") { print "cdi\t" $2 "\t" $3; next }
            typed ~ /"--gpus["=]/ { print "gpus\t" $2 "\t" $3; next }
            typed == "null" && index($6, "\"/dev/nvidiactl\"") { print "cdi\t" $2 "\t" $3 }'
}

# The words that made it; a container of the API has none, but the devices that CDI gave it when it started.
# podman 5 takes --gpus for a CDI device.
gpunode_podman_row='{{.OCIRuntime}}{{"\t"}}{{.Id}}{{"\t"}}{{.Name}}{{"\t"}}{{json .Config.CreateCommand}}'
gpunode_podman_row=$gpunode_podman_row'{{"\t"}}{{json .Config.Cmd}}{{"\t"}}{{json .HostConfig.Devices}}'

gpunode_program='/nvidia-container-runtime(\.[a-z]+)?'
# The hooks of NVIDIA's CDI specifications, which an engine without NVIDIA's program writes into a container's own one.
gpunode_cdi_hook='"path": *"/usr/bin/nvidia-(cdi-hook|ctk)"'

# gpunode_processes: what runs by NVIDIA's program, or got a CDI device from containerd, which has no list of those:
# containerd's shims know it by their bundles, conmon by its arguments.
gpunode_processes() {
    gpunode_depth=$(gpunode_depth_of self)
    for gpunode_process in /proc/[0-9]*; do
        read -r gpunode_comm 2>/dev/null <"$gpunode_process/comm" || continue
        case $gpunode_comm in containerd-shim* | conmon) ;; *) continue ;; esac
        # Root's, and not in a container, where anybody is root.
        [ "$(stat -c %u "$gpunode_process" 2>/dev/null)" = 0 ] || continue
        [ "$(gpunode_depth_of "${gpunode_process#/proc/}")" = "$gpunode_depth" ] || continue
        case $gpunode_comm in
        conmon) gpunode_of_conmon "$gpunode_process" ;;
        *) readlink "$gpunode_process/cwd" | sed 's|/[^/]*$||' ;; # one directory for all of a namespace
        esac
    done | sort -u | while IFS= read -r gpunode_line; do
        case $gpunode_line in
        /*) gpunode_of_shims "$gpunode_line" ;;
        *) printf '%s\n' "$gpunode_line" ;;
        esac
    done
}

# gpunode_depth_of PID: how many pid namespaces it is in.
gpunode_depth_of() {
    awk '$1 == "NSpid:" { print NF }' "/proc/$1/status" 2>/dev/null
}

# gpunode_of_conmon PROCESS: its options -r (the runtime), -c (the container) and -n (its name).
gpunode_of_conmon() {
    tr '\0' '\n' <"$1/cmdline" 2>/dev/null | awk -v program="$gpunode_program\$" '
        option == "-r" { runtime = $0 } option == "-c" { id = $0 } option == "-n" { name = $0 }
        { option = $0 }
        END { if (("/" runtime) ~ program) print "program\t" id "\t" name }'
}

# gpunode_of_shims DIRECTORY: the bundles in it; a shim stands in one of them, and serves the others of its pod.
gpunode_of_shims() {
    trusted "$1" || return 0
    for gpunode_bundle in "$1"/*/; do
        gpunode_bundle=${gpunode_bundle%/} gpunode_pid=
        read -r gpunode_pid 2>/dev/null <"$gpunode_bundle/init.pid" || : # it ends without a newline
        [ -z "$gpunode_pid" ] || [ -d "/proc/$gpunode_pid" ] || continue # a shim that failed leaves its bundle
        # Version 2 of the shim writes the one, older and newer ones the other as well.
        gpunode_need=program
        grep -qsE "$gpunode_program(\"|\$)" "$gpunode_bundle/runtime" "$gpunode_bundle/options.json" || gpunode_need=cdi
        [ "$gpunode_need" = program ] || grep -qsE "$gpunode_cdi_hook" "$gpunode_bundle/config.json" || continue
        gpunode_space=$(gpunode_annotation namespace "$gpunode_bundle") gpunode_name=$(gpunode_annotation name "$gpunode_bundle")
        gpunode_id=${gpunode_bundle##*/}
        printf '%s\t%s\t%s\n' "$gpunode_need" "$gpunode_id" "${gpunode_name:+$gpunode_space/$gpunode_name}"
    done | sort | awk -F '\t' -v OFS='\t' '{ if ($3 == "") $3 = $2; print }'
}

gpunode_annotation() { # KEY BUNDLE
    # With blanks or without: NVIDIA's program writes the file anew.
    sed -n "s/.*\"io\.kubernetes\.cri\.sandbox-$1\": *\"\([^\"\\\\]*\)\".*/\1/p" "$2/config.json" 2>/dev/null | head -n 1
}

failed() {
    printf 'failed %s\n' "$1" >&3
    exit 0
}

# shellcheck disable=SC2034  # trust.sh reads it
R=''
who
{
    gpunode_found=$(
        case $1 in
        docker) gpunode_docker_containers "$2" "$3" "$4" "$5" ;;
        podman) gpunode_podman_containers "$2" ;;
        cri) gpunode_pods "$2" "$3" ;;
        processes) gpunode_processes ;;
        esac | gpunode_named
    )
} 3>&1
echo containers
printf '%s\n' "$gpunode_found"
