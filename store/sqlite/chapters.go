package sqlite

// A journal is divided into chapters. The chapters of all runs are numbered in the order in which they begin. The key
// of an event is the number of its chapter with its own number. So the concurrent writes of a hundred runs share a
// few pages at the end of the index. If the key contained the number of the run, each run would need a separate page,
// written with every commit. UNIQUE(run, seq) still holds: two appends after the same event are either in the same
// chapter, or both begin one, and PRIMARY KEY(run, first) accepts only one of them.
//
// A chapter has at least one event, and all events of a run are in chapters.

// chapterEvents is the number of events of a chapter after which the next one begins. A smaller number makes more
// chapters; a larger one needs more pages.
const chapterEvents = 32

const (
	// lastChapter selects the last chapter of a row of runs.
	lastChapter = "FROM chapters c WHERE c.run = runs.n ORDER BY c.first DESC LIMIT 1"
	// lastRow selects the last row of events in that chapter.
	lastRow = "FROM events e WHERE e.chapter = (SELECT c.n " + lastChapter + ") ORDER BY e.seq DESC LIMIT 1"

	// selectEvents reads the journal of a run (1) in its order. It begins with the row that contains the event after
	// a given one (2).
	selectEvents = `SELECT e.seq, e.n, e.last, e.events, e.blob, b.data, e.mac, e.chapter, e.sum
		FROM runs r JOIN chapters c ON c.run = r.n JOIN events e ON e.chapter = c.n LEFT JOIN blobs b
			ON b.digest = e.blob
		WHERE r.id = ?1 AND c.first >= (SELECT max(f.first) FROM chapters f WHERE f.run = r.n AND f.first <= ?2 + 1)
			AND e.seq >= coalesce((SELECT max(f.seq) FROM events f WHERE f.chapter = c.n AND f.seq <= ?2 + 1), 0)
		ORDER BY c.first, e.seq`
)

// turnTo begins a new chapter if the current one is full.
func (w *writer) turnTo(pos *position) error {
	next := pos.seq + 1
	if pos.chapter > 0 && next-pos.first < chapterEvents {
		return nil
	}
	if w.chapter == 0 {
		n, err := w.stmts.newChapter.number()
		if err != nil {
			return err
		}
		w.chapter = n
	}
	if err := w.stmts.putChapter.exec(pos.n, int64(next), w.chapter); err != nil {
		return err
	}
	pos.chapter, pos.first = w.chapter, next
	w.chapter++
	return nil
}
