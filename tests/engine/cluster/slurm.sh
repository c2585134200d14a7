#!/bin/sh
# A SLURM cluster of one node, this machine, without accounting; for tests, on Debian or Ubuntu, as root.
#   slurm.sh         installs what is missing, starts what does not run, waits until the node is idle
#   slurm.sh stop    stops it
set -eu

conf=/etc/slurm/slurm.conf
name=$(hostname -s)
memory=$(awk "/^MemTotal/ {print int(\$2 / 1100)}" /proc/meminfo) # MB, with some left over

say() { echo "slurm.sh: $*"; }

stop() {
    for daemon in slurmd slurmctld munged; do
        pid=$(pgrep -x "$daemon" || true)
        [ -z "$pid" ] && continue
        kill $pid
        for _ in $(seq 50); do
            pgrep -x "$daemon" >/dev/null || break
            sleep 0.1
        done
        say "stopped $daemon"
    done
}

install() {
    command -v sbatch >/dev/null && command -v slurmd >/dev/null && command -v munged >/dev/null && return
    say "installing slurmctld, slurmd, slurm-client and munge"
    # the services are started below, so the packages must not
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
        printf '#!/bin/sh\nexit 101\n' >$policy
        chmod +x $policy
        ours=$policy
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client munge >/dev/null
    rm -f "${ours:-}"
}

configure() {
    mkdir -p /etc/slurm /var/spool/slurmctld /var/spool/slurmd /var/log/slurm /run/munge
    chown munge: /run/munge
    cat >$conf.new <<END
ClusterName=tests
SlurmctldHost=$name(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
# a requeued job starts again after some seconds, not after two minutes
AuthInfo=cred_expire=5
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
# no cgroups: it must work in containers
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,bf_interval=2
ReturnToService=2
KillWait=10
MinJobAge=10
NodeName=$name NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$memory State=UNKNOWN
PartitionName=main Nodes=$name Default=YES MaxTime=INFINITE State=UP
END
    if ! cmp -s $conf.new $conf; then
        mv $conf.new $conf
        say "wrote $conf for $name with $(nproc) CPUs"
        stop # what runs has another one
    else
        rm $conf.new
    fi
}

start() {
    if [ ! -s /etc/munge/munge.key ]; then
        dd if=/dev/urandom of=/etc/munge/munge.key bs=1024 count=1 2>/dev/null
        chown munge: /etc/munge/munge.key
        chmod 400 /etc/munge/munge.key
    fi
    pgrep -x munged >/dev/null || { setpriv --reuid munge --regid munge --clear-groups munged && say "started munged"; }
    pgrep -x slurmctld >/dev/null || { slurmctld && say "started slurmctld"; }
    pgrep -x slurmd >/dev/null || { slurmd && say "started slurmd"; }
    for _ in $(seq 60); do
        case $(sinfo -h -o %t 2>/dev/null) in
        idle | mix | alloc)
            say "$(sinfo -h -o 'node %N is %t, %c CPUs')"
            return
            ;;
        down* | drain*) scontrol update nodename="$name" state=resume 2>/dev/null || true ;;
        esac
        sleep 0.5
    done
    say "the node does not become idle; see /var/log/slurm" >&2
    exit 1
}

if [ -e $conf ] && ! grep -qx ClusterName=tests $conf; then
    say "$conf is of another cluster: left as it is" >&2
    exit 1
fi
if [ "${1:-}" = stop ]; then
    stop
    exit
fi
[ "$(id -u)" = 0 ] || { say "must be root" >&2; exit 1; }
install
configure
start
