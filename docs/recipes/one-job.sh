#!/usr/bin/env bash
# A study with its driver and its workers as one job: sbatch one-job.sh study.toml --checkpoints /shared/study --db study.db
#SBATCH --job-name=study
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=2
#SBATCH --time=08:00:00
#SBATCH --signal=B:TERM@120
#SBATCH --requeue
#SBATCH --open-mode=append
set -eu
source "$HOME/workbench/.venv/bin/activate"
umask 077
here=$PWD/job-$SLURM_JOB_ID
mkdir -p "$here"

# who can reach a Dask scheduler can run code on its workers: certificates of this job's own
tls=DASK_DISTRIBUTED__COMM__TLS
openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=study -keyout "$here/key.pem" -out "$here/cert.pem" 2>/dev/null
export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=True ${tls}__CA_FILE="$here/cert.pem"
for role in SCHEDULER WORKER CLIENT; do
	export ${tls}__${role}__CERT="$here/cert.pem" ${tls}__${role}__KEY="$here/key.pem"
done
export DASK_DISTRIBUTED__WORKER__DAEMON=False OMP_NUM_THREADS=1

rm -f "$here/scheduler.json"
dask scheduler --protocol tls --interface ib0 --no-dashboard --scheduler-file "$here/scheduler.json" &
scheduler=$!
# shellcheck disable=SC2016  # each node has a name of its own
srun bash -c 'exec dask worker --protocol tls --interface ib0 --nthreads 1 --nworkers 2 --memory-limit 0 --no-dashboard \
	--name "$SLURMD_NODENAME" --scheduler-file "$0"' "$here/scheduler.json" &
workers=$!
resume= # a job may also be requeued before its study has begun, as when a node does not come up
[ "${SLURM_RESTART_COUNT:-0}" = 0 ] || [ ! -e "$here/begun" ] || resume=--resume
touch "$here/begun"
workbench run "$@" $resume --cluster "$here/scheduler.json" &
study=$!

leave() { # two minutes before the limit: workers save within their phases, then the study ends, to go on in a job to come
	trap - TERM
	scancel --signal=TERM "$SLURM_JOB_ID.0" && wait $workers || true # srun itself would have them killed
	kill -TERM $study && wait $study || true
	kill $scheduler
	scontrol requeue "$SLURM_JOB_ID"
	exit 0
}
trap leave TERM
wait $study && ended=0 || ended=$?
kill $workers $scheduler
exit $ended
