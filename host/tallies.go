package host

import (
	"context"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/view"
)

// Statistics and the search read what is derived from journals: summaries of runs, and the index of texts. They are
// brought up to date when runs end: by tenon serve all the time, by other processes when they close and enough runs
// have gathered. A query does the rest itself for a limited time. So the runs of a store from an earlier release delay
// no command.
const (
	// tallyBatch is how many runs are summarized in one transaction.
	tallyBatch = 256
	// maxFresh and freshFor bound the journals that one query of statistics reads.
	maxFresh = 4096
	freshFor = 2 * time.Second
	// catchUpFrom is how many ended runs have to gather before a process brings them up to date at its end.
	catchUpFrom = 64
	// catchUpFor is the time after which such a process begins no further batch.
	catchUpFor = 200 * time.Millisecond
)

// runTally is the summary of a run.
type runTally struct {
	run   string
	seq   uint64 // of the last event
	tally view.Tally
	own   bool // the user's run; runs of others and imported ones are not counted
}

// newTallies summarizes the runs without an up-to-date summary, newest first, and stores the summaries of the ended
// ones. Left is the number of runs that it did not get to, or could not read.
func (h *Host) newTallies(ctx context.Context) (fresh []runTally, left int, err error) {
	runs, total, err := h.store.Uncounted(ctx, false, maxFresh)
	if err != nil {
		return nil, 0, err
	}
	left = total
	var ended []runTally
	for deadline := time.Now().Add(freshFor); len(runs) > 0 && time.Now().Before(deadline); runs = runs[1:] {
		t, err := h.tally(ctx, runs[0])
		switch {
		case ctx.Err() != nil:
			return nil, 0, tenon.Errorf(tenon.CodeCancelled, "%w", context.Cause(ctx))
		case tenon.ErrorCode(err) == tenon.CodeNotFound: // deleted since its row was read
			left--
			continue
		case err != nil:
			h.log.Warn("the statistics leave out a run whose journal cannot be read", "run", runs[0].ID, "error", err)
			continue
		}
		left--
		if t.own {
			fresh = append(fresh, t)
		}
		if runs[0].State.Ended() {
			ended = append(ended, t)
		}
	}
	for len(ended) > 0 {
		n := min(len(ended), tallyBatch)
		if err := h.putTallies(ctx, ended[:n]); err != nil {
			h.log.Debug("the summaries of runs are not stored", "error", err.Error())
			break // the counts do not need it
		}
		ended = ended[n:]
	}
	return fresh, left, nil
}

// tally summarizes a run up to its last event at the time when its row was read.
func (h *Host) tally(ctx context.Context, r tenon.Run) (runTally, error) {
	t := runTally{run: r.ID, seq: r.Seq}
	if r.Imported != nil || r.Foreign {
		return t, nil // other processes made its calls
	}
	t.own = true
	var events []tenon.Event
	if r.Seq > 0 {
		var err error
		if events, err = h.store.Events(ctx, r.ID, 0, int(r.Seq)); err != nil {
			return t, err
		}
	}
	t.tally = view.TallyOf(r, events)
	return t, nil
}

func (h *Host) putTallies(ctx context.Context, list []runTally) error {
	rows := make([]store.Tally, len(list))
	for i, t := range list {
		rows[i] = store.Tally{Run: t.run, Seq: t.seq}
		if t.own {
			rows[i].Data = view.AppendTally(nil, &t.tally)
		}
	}
	return h.store.PutTallies(ctx, rows)
}

// bookkeeper brings the summaries and the index of a store up to date. It does not try runs again that it cannot read.
type bookkeeper struct {
	h     *Host
	texts interface {
		Next(ctx context.Context, f store.GapFilter) (done, left int, err error)
	}
	failed map[string]bool
}

func (h *Host) bookkeeper() *bookkeeper {
	return &bookkeeper{h: h, texts: h.transcripts.Indexer(), failed: map[string]bool{}}
}

// count summarizes one batch of ended runs. It returns how many.
func (b *bookkeeper) count(ctx context.Context) (done int, err error) {
	runs, _, err := b.h.store.Uncounted(ctx, true, tallyBatch+len(b.failed))
	if err != nil {
		return 0, err
	}
	var list []runTally
	for _, r := range runs {
		if b.failed[r.ID] {
			continue
		}
		t, err := b.h.tally(ctx, r)
		switch {
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case tenon.ErrorCode(err) == tenon.CodeNotFound:
		case err != nil:
			b.failed[r.ID] = true
			b.h.log.Warn("the statistics leave out a run whose journal cannot be read", "run", r.ID, "error", err)
		default:
			list = append(list, t)
		}
	}
	return len(list), b.h.putTallies(ctx, list)
}

// index adds one batch of ended runs to the index of texts. It returns how many, and how many are left.
func (b *bookkeeper) index(ctx context.Context) (done, left int, err error) {
	for {
		list := b.h.audits.texts.take()
		if len(list) == 0 {
			break
		}
		if err := b.h.store.PutTexts(ctx, list); err != nil {
			return 0, 0, err
		}
	}
	return b.texts.Next(ctx, store.GapFilter{Ended: true})
}

const (
	// keepEvery is the interval between looks for runs that have ended. A commit to the index costs much more than one
	// text in it, so it gathers the runs of an interval. A query adds what is missing itself.
	keepEvery = time.Second
	// keepPause is the pause after a batch, as a multiple of its duration, while this process works on runs. So the
	// index takes at most a quarter of a core from them.
	keepPause = 3
)

// Keep implements [Storage.Keep].
func (h stateHandle) Keep(ctx context.Context) {
	if h.host.cfg.ReadOnly || h.host.cfg.Untrusted {
		return
	}
	b := h.host.bookkeeper()
	for failing := false; ; {
		began := time.Now()
		counted, err := b.count(ctx)
		left := 0
		if err == nil && counted < tallyBatch { // summaries are cheap, and go first
			_, left, err = b.index(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			h.host.log.Warn("statistics and search are not brought up to date", "error", err)
		}
		failing = err != nil
		pause := keepEvery
		if err == nil && (counted >= tallyBatch || left > 0) { // more runs have ended than one batch has
			pause = time.Since(began)
			if h.host.working() > 0 {
				pause *= keepPause
			}
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// working is the number of runs on which this process works.
func (h *Host) working() int {
	_, all := h.Service().Callers().Working("")
	return all
}

// catchUp brings a store up to date at the end of a process, if enough runs have gathered and no tenon serve does it.
func (h *Host) catchUp() {
	if h.cfg.ReadOnly || h.cfg.Untrusted || !h.began.Load() {
		return
	}
	ctx, began := context.Background(), time.Now()
	_, gathered, err := h.store.Uncounted(ctx, false, -1)
	if err != nil || gathered < catchUpFrom {
		return
	}
	if served, err := h.store.Held(claims + ServeClaim); err != nil || served {
		return
	}
	b := h.bookkeeper()
	for {
		counted, err := b.count(ctx)
		indexed := 0
		if err == nil {
			indexed, _, err = b.index(ctx)
		}
		if err != nil || counted+indexed == 0 || time.Since(began) > catchUpFor {
			return // the next process continues; a query reports errors
		}
	}
}
