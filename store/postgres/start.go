package postgres

import (
	"encoding/json"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/forms"
)

// The start and the end of a run are functions of the schema, too, so that a session keeps the plans of their
// statements. Each takes one run: a plan for an array would read whole tables if it was made while they were small.
//
// begin_run adds the row of a run and what belongs to it, and returns the primary key. If lease_epoch is not 0, the run
// must have this lease of the replica me. The lease stays locked until the end of the transaction, so that the run
// belongs to the era that append_rows compares. An exclusive run locks its session, because other replicas may begin
// a run at the same time, and has to continue it at its end (see store.Continues). begin_run fails with notAlone unless
// all of that is as expected.
//
// set_state changes the state of a run.
const addStarts = `
CREATE FUNCTION @begin_run(me text, lease_epoch bigint, lock_text text, used bytea[], links bytea[], new_id text,
	new_session text, new_principal text, new_caller text, new_parent text, new_parent_seq bigint, new_core text,
	new_agent text, new_model text, new_title text, new_state text, new_stop text, new_created bigint,
	new_updated bigint, new_waiting bytea, new_imported bytea, new_mac bytea, session_mac bytea, tally bytea,
	tally_mac bytea, seqs bigint[], counts bigint[], lasts bigint[], packed bytea[], digests bytea[], macs bytea[])
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	key bigint;
	d bytea;
BEGIN
	IF lease_epoch <> 0 THEN
		PERFORM 1 FROM @leases l WHERE l.run = new_id AND l.epoch = lease_epoch AND l.owner = me FOR SHARE;
		IF NOT FOUND THEN
			RAISE EXCEPTION 'the lease of the new run is not as expected' USING ERRCODE = 'TN002';
		END IF;
	END IF;
	IF lock_text <> '' THEN
		PERFORM pg_advisory_xact_lock(hashtextextended(lock_text, 7429));
		PERFORM 1 FROM @runs r WHERE r.session = new_session AND r.state IN ('working', 'input_required')
			AND r.caller = '' LIMIT 1;
		IF FOUND THEN
			RAISE EXCEPTION 'another run of the session has not ended' USING ERRCODE = 'TN002';
		END IF;
		PERFORM 1 FROM @sessions s WHERE s.id = new_session AND s.head <> '' AND (s.head <> new_parent OR
			new_parent_seq <> coalesce(nullif(s.head_seq, 0), (SELECT max(e.last) FROM @events e
				JOIN @runs r ON r.n = e.run WHERE r.id = s.head), 0));
		IF FOUND THEN
			RAISE EXCEPTION 'another run has continued the session' USING ERRCODE = 'TN002';
		END IF;
	END IF;
	FOREACH d IN ARRAY used LOOP
		PERFORM 1 FROM @blobs b WHERE b.digest = d FOR KEY SHARE;
		IF NOT FOUND THEN
			RAISE EXCEPTION 'the run uses a missing blob' USING ERRCODE = 'TN002';
		END IF;
	END LOOP;
	INSERT INTO @runs (id, session, principal, caller, parent, parent_seq, core, agent, model, title, state, stop,
			created, updated, waiting, imported, mac)
		VALUES (new_id, new_session, new_principal, new_caller, new_parent, new_parent_seq, new_core, new_agent,
			new_model, new_title, new_state, new_stop, new_created, new_updated, new_waiting, new_imported, new_mac)
		ON CONFLICT (id) DO NOTHING RETURNING n INTO key;
	IF NOT FOUND THEN
		RAISE EXCEPTION 'the run exists' USING ERRCODE = 'TN002';
	END IF;
	IF new_session <> '' AND new_caller = '' THEN
		INSERT INTO @sessions AS s (id, title, agent, principal, parent, head, head_seq, runs, created, updated,
				imported, mac)
			VALUES (new_session, new_title, new_agent, new_principal, '', new_id, 0, 1, new_created, new_updated, 0,
				session_mac)
			ON CONFLICT (id) DO UPDATE SET head = excluded.head, head_seq = 0, runs = s.runs + 1,
				updated = greatest(s.updated, excluded.updated),
				title = CASE s.title WHEN '' THEN excluded.title ELSE s.title END,
				agent = CASE s.agent WHEN '' THEN excluded.agent ELSE s.agent END,
				mac = CASE s.principal WHEN '' THEN excluded.mac ELSE s.mac END,
				principal = CASE s.principal WHEN '' THEN excluded.principal ELSE s.principal END;
	END IF;
	FOREACH d IN ARRAY links LOOP
		INSERT INTO @run_blobs (run, blob) VALUES (key, d) ON CONFLICT DO NOTHING;
	END LOOP;
	IF tally IS NOT NULL THEN
		INSERT INTO @tallies (run, id, seq, data, mac)
			VALUES (key, new_id, (SELECT coalesce(sum(c), 0) FROM unnest(counts) c), tally, tally_mac);
	END IF;
	INSERT INTO @pending (run, todo) VALUES (key, CASE WHEN tally IS NULL THEN 3 ELSE 2 END);
	INSERT INTO @events (run, seq, n, last, events, blob, mac)
		SELECT key, unnest(seqs), unnest(counts), unnest(lasts), unnest(packed), unnest(digests), unnest(macs);
	RETURN key;
END
$$;
CREATE FUNCTION @set_state(key bigint, new_state text, new_stop text, new_waiting bytea, new_updated bigint,
	new_mac bytea, ended bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	its_session text;
BEGIN
	UPDATE @runs r SET state = new_state, stop = new_stop, waiting = new_waiting, updated = new_updated, mac = new_mac
		WHERE r.n = key RETURNING r.session INTO its_session;
	INSERT INTO @pending AS p (run, todo) VALUES (key, 3)
		ON CONFLICT (run) DO UPDATE SET todo = 3 WHERE p.todo <> 3;
	IF ended <> 0 AND its_session <> '' THEN
		UPDATE @sessions s SET updated = greatest(s.updated, new_updated) WHERE s.id = its_session;
	END IF;
END
$$;
`

// notAlone is the code of the error of begin_run: the run is to be begun with a look at everything that may refuse it.
const notAlone = "TN002"

// begun is a new run of a transaction.
type begun struct {
	pos  *position
	rows eventRows // its events
	args []any     // of begin_run
}

// create adds the row of a run. In a guess, the run gets its primary key only when the statements are sent.
func (t *tx) create(a *store.Append, rows []forms.Row, blobs []blob, waiting []byte) (*position, error) {
	r := *a.Create
	if a.State != "" {
		r.State, r.Stop = a.State, a.Stop
	}
	if r.State == "" {
		r.State = tenon.RunWorking
	}
	var mark []byte // NULL unless the run was imported
	if r.Imported != nil {
		var err error
		if mark, err = json.Marshal(r.Imported); err != nil {
			return nil, err
		}
	}
	lock := "" // text that the lock of the session is made from
	if a.Exclusive && r.Session != "" && r.Caller == "" {
		lock = t.s.schema + r.Session
	}
	if !t.guess {
		if err := t.free(lock, &r); err != nil {
			return nil, err
		}
		if err := t.haveBlobs(a.Run, blobs); err != nil {
			return nil, err
		}
		lock = ""
	}
	used, links := [][]byte{}, [][]byte{}
	for _, b := range blobs {
		links = append(links, b.digest)
		if b.data != nil {
			t.queue(insertBlob, b.digest, b.data)
		} else {
			used = append(used, b.digest)
		}
	}
	if r.Created.IsZero() {
		r.Created = t.s.now()
	}
	if r.Updated.IsZero() {
		r.Updated = r.Created
	}
	p := &position{imported: r.Imported != nil, base: t.s.key.RunBase(&r, mark)}
	b := &begun{pos: p}
	t.events(&b.rows, p, rows)
	var tally, tallyMAC []byte
	if len(a.Tally) > 0 {
		tally, tallyMAC = a.Tally, t.s.key.Tally(a.Run, p.seq, a.Tally)
	}
	e := &b.rows
	b.args = []any{t.s.replica, t.epochs[a.Run], lock, used, links, r.ID, r.Session, string(r.Principal), r.Caller,
		r.Parent, int64(r.ParentSeq), r.Core, r.Agent, r.Model, r.Title, string(r.State), string(r.Stop),
		forms.Nanos(r.Created), forms.Nanos(r.Updated), waiting, mark,
		t.s.key.RunRow(p.base, r.ID, r.State, r.Stop, waiting, 0), t.s.key.Session(r.Session, r.Principal), tally,
		tallyMAC, e.seqs, e.ns, e.lasts, e.events, e.blobs, e.macs}
	return p, t.begin(b)
}

// begin calls begin_run, or leaves the call to the end of a guess.
func (t *tx) begin(b *begun) error {
	t.begun = append(t.begun, b)
	if t.guess {
		return nil
	}
	if err := t.queueBegun(); err != nil {
		return err
	}
	_, err := t.send()
	return err
}

// queueBegun queues the calls of begin_run. When they are sent, the runs get their primary keys.
func (t *tx) queueBegun() error {
	for _, b := range t.begun {
		if t.keys == nil {
			t.keys = map[int]*position{}
		}
		t.keys[t.queued] = b.pos
		if err := t.call(&beginRun, b.args...); err != nil {
			return err
		}
	}
	t.begun = nil
	return nil
}

// queueStates queues the calls of set_state.
func (t *tx) queueStates() error {
	for _, args := range t.states {
		if err := t.call(&setState, args...); err != nil {
			return err
		}
	}
	t.states = nil
	return nil
}

func (t *tx) state(pos *position, a *store.Append, waiting []byte) {
	now := t.s.now()
	if n := len(a.Events); n > 0 {
		now = a.Events[n-1].Time
	}
	ended := int64(0)
	if a.State.Ended() {
		ended = 1
	}
	t.states = append(t.states, []any{pos.n, string(a.State), string(a.Stop), waiting, forms.Nanos(now),
		t.s.key.RunRow(pos.base, a.Run, a.State, a.Stop, waiting, pos.seq), ended})
}
