package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// An append of a run whose position is known takes one statement, which calls the function append_rows. The function
// does not look at the lease of each run. It compares two numbers in the row of the writer that this store has in the
// table of writers:
//
//   - The era changes whenever somebody else takes or deletes a lease of this replica: a trigger of the table of leases
//     does that, in the same transaction, so programs of older schemas do it, too. While the era is the same as when
//     this store last looked at its leases, it has all of them.
//   - The number of the last transaction is smaller than expected only if the database has lost commits, for example in
//     a fail-over. While it is not, this store remembers the same positions as the database. A statement that raises
//     the number without looking at all positions begins a new era if the number is too small; see numbered and fence.
//
// Both sides lock the row of the writer, and the lock lasts until the end of the transaction. So an append is committed
// either before a lease is taken over, or not at all. The trigger never waits for the lock, because the other side may
// wait for a lease: a lease whose owner is just writing is not taken now.
//
//	append:    row of the writer (lock, compare) ─► rows of events ─► commit
//	take over: lease (lock) ─► row of its owner's writer (lock or give up, new era) ─► new owner ─► commit

// ownerSetting is a setting of a transaction: the replica that it belongs to. A replica that deletes its own leases
// begins no new era.
const ownerSetting = "tenon.replica"

// isOwn is a condition that is true for leases of the replica $n. It tells the trigger that the replica itself deletes
// them. The database evaluates it for a row before it deletes the row, because set_config is volatile.
func isOwn(n string) string { return "owner = set_config('" + ownerSetting + "', " + n + ", true)" }

// newEra is the number of a new era. It is random, because a sequence may return a number again after a fail-over.
const newEra = "(1 + floor(random() * 9e15))::bigint"

// addEras is a migration. The column is 0 for programs of older schemas. They lock the row of each lease, so their
// leases are taken without a look at their writers.
//
// append_rows adds rows of events. It fails with wrongGuess if the era or the last transaction are not as expected, if
// the leases of the replica have expired, or if the store was moved. A session keeps the plans of its statements, also
// behind a pooler. The table of marks is read after the lock, so that it shows a move that held the lock until then.
const addEras = `
ALTER TABLE @writers ADD COLUMN era bigint NOT NULL DEFAULT 0;
CREATE FUNCTION @new_era() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	was bigint;
	mine boolean;
BEGIN
	IF TG_OP = 'UPDATE' THEN
		IF NEW.owner = OLD.owner THEN
			RETURN NEW;
		END IF;
	ELSIF OLD.owner = current_setting('tenon.replica', true) THEN
		RETURN OLD;
	END IF;
	SELECT w.era, w.xmin = pg_current_xact_id()::xid INTO was, mine FROM @writers w
		WHERE w.replica = OLD.owner AND w.slot = 0 FOR UPDATE SKIP LOCKED;
	IF NOT FOUND THEN
		IF EXISTS (SELECT 1 FROM @writers w WHERE w.replica = OLD.owner AND w.slot = 0 AND w.era <> 0) THEN
			RETURN NULL;
		END IF;
	ELSIF was <> 0 AND NOT mine THEN
		UPDATE @writers w SET era = ` + newEra + ` WHERE w.replica = OLD.owner AND w.slot = 0;
	END IF;
	IF TG_OP = 'UPDATE' THEN
		RETURN NEW;
	END IF;
	RETURN OLD;
END
$$;
CREATE TRIGGER new_era BEFORE UPDATE OR DELETE ON @leases FOR EACH ROW EXECUTE FUNCTION @new_era();
CREATE FUNCTION @append_rows(me text, known_era bigint, last_n bigint, new_n bigint, runs bigint[], seqs bigint[],
	counts bigint[], lasts bigint[], packed bytea[], digests bytea[], macs bytea[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	UPDATE @writers w SET n = new_n
		WHERE w.replica = me AND w.slot = 0 AND w.era = known_era AND w.n >= last_n AND w.n < new_n;
	IF NOT FOUND OR NOT EXISTS (SELECT 1 FROM @replicas r WHERE r.id = me AND r.expires > clock_timestamp())
		OR EXISTS (SELECT 1 FROM @marks m
			WHERE m.name >= '\x74656e6f6e206d6f766520'::bytea AND m.name < '\x74656e6f6e206d6f766521'::bytea) THEN
		RAISE EXCEPTION 'the leases or the positions of this replica are to be read again' USING ERRCODE = 'TN001';
	END IF;
	INSERT INTO @events (run, seq, n, last, events, blob, mac)
		SELECT unnest(runs), unnest(seqs), unnest(counts), unnest(lasts), unnest(packed), unnest(digests), unnest(macs);
END
$$;
`

// inLimbo notes the number of an append of which it is not known whether it was stored, or 0: a later number in the row
// of the writer shows that it is not under way any more.
func (s *Store) inLimbo(sl *slot, n int64) {
	if sl.id == 0 {
		s.limbo.Store(n)
	}
}

// settled reports whether no append in limbo is under way. The server may still be making such an append, or read it
// later. It does not lock the leases of its runs. So until it has ended, this store neither deletes its own leases nor
// takes them again: their new owner would read the journal too early. settled does not wait for the append. If the
// append has no lock, a new era makes it fail.
func (s *Store) settled(ctx context.Context) (ok bool, err error) {
	limbo := s.limbo.Load()
	if limbo == 0 {
		return true, nil
	}
	err = s.each(ctx, `WITH w AS (SELECT replica FROM @writers WHERE replica = $1 AND slot = 0 FOR UPDATE SKIP LOCKED),
		stored AS (UPDATE @writers SET era = `+newEra+` FROM w
			WHERE @writers.replica = w.replica AND slot = 0 RETURNING 1)
		SELECT EXISTS (SELECT 1 FROM stored) OR NOT EXISTS (SELECT 1 FROM @writers WHERE replica = $1 AND slot = 0)`,
		[]any{s.replica}, func(rows pgx.Rows) error { return rows.Scan(&ok) })
	if err != nil || !ok {
		return false, err
	}
	s.limbo.CompareAndSwap(limbo, 0)
	return s.limbo.Load() == 0, nil // there may be another one since
}

// wrongGuess is the code of the error of append_rows.
const wrongGuess = "TN001"
