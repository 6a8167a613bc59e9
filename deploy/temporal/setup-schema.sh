#!/bin/sh
# Makes or updates both of Temporal's databases. May run again at any time: what is
# there is brought up to the version of this image, and nothing else happens.
# SQL_PASSWORD is read by temporal-sql-tool itself.
set -eu

tool() {
  db=$1
  shift
  temporal-sql-tool --plugin postgres12 --ep "$POSTGRES_SEEDS" -p "${DB_PORT:-5432}" -u "$POSTGRES_USER" --db "$db" "$@"
}

for pair in temporal:temporal temporal_visibility:visibility; do
  database=${pair%%:*}
  versions=/etc/temporal/schema/postgresql/v12/${pair##*:}/versioned
  tool "$database" create # does nothing when it is there
  # Only a new database has no version yet; setting one up again would fail.
  tool "$database" update-schema -d "$versions" || {
    tool "$database" setup-schema -v 0.0
    tool "$database" update-schema -d "$versions"
  }
done
