package httpapi

import "sync"

// waiters counts the requests that wait for the answers of runs. With [Config.CancelLeft], a run is cancelled when the
// last of them has left. The zero value is empty. It is safe for concurrent use.
type waiters struct {
	mu sync.Mutex
	of map[string]*waitedRun
}

type waitedRun struct {
	requests int
	left     bool // a client that asked for the run has gone away
}

// enter counts a request that begins to wait for a run.
func (w *waiters) enter(run string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string]*waitedRun{}
	}
	if w.of[run] == nil {
		w.of[run] = &waitedRun{}
	}
	w.of[run].requests++
}

// leave ends the wait of a request. left means that its client has gone away, and did not only watch the run of another
// request. leave reports whether the run has to be cancelled: all requests have ended, and such a client was the last
// one or has left before.
func (w *waiters) leave(run string, left bool) (cancel bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.of[run]
	r.left = r.left || left
	if r.requests--; r.requests > 0 {
		return false
	}
	delete(w.of, run)
	return r.left
}
