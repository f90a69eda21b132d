package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// memoryStore is the minimal store for a host: journals and blobs in memory, no sessions and no signals.
type memoryStore struct {
	store.Inbox   // without signals, so its other methods are never called
	grants        // never used
	sessionGrants // never used
	store.Budgets // no limits
	store.Texts   // no searches
	store.Owners  // no foreign rows
	store.Results // no cache
	store.Rates   // no rates
	pins          // no servers
	tallies       // no statistics

	mu    sync.Mutex
	runs  map[string]*memoryRun
	spare []tenon.Event // slice of a forgotten run, for reuse
	blobs map[string][]byte
}

// These names rename interfaces of package store. Embedded under their own names, their fields would collide with
// methods of the same name.
type (
	grants        = store.Grants
	sessionGrants = store.SessionGrants
	pins          = store.Pins
	tallies       = store.Tallies
)

type memoryRun struct {
	row    tenon.Run
	events []tenon.Event
}

func newMemoryStore() *memoryStore {
	return &memoryStore{runs: map[string]*memoryRun{}, blobs: map[string][]byte{}}
}

// Uncounted implements [store.Tallies]: nothing is counted.
func (m *memoryStore) Uncounted(context.Context, bool, int) ([]tenon.Run, int, error) {
	return nil, 0, nil
}

func (m *memoryStore) forget(run string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[run]; r != nil {
		clear(r.events)
		m.spare = r.events[:0]
	}
	delete(m.runs, run)
}

// Append implements [store.Journal].
func (m *memoryStore) Append(_ context.Context, a store.Append) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.Create != nil {
		for _, digest := range a.Uses {
			if m.blobs[digest] == nil {
				return tenon.Errorf(tenon.CodeNotFound, "no blob %s", digest)
			}
		}
		m.runs[a.Run] = &memoryRun{row: *a.Create, events: m.spare}
		m.spare = nil
		for _, data := range a.Blobs {
			m.blobs[fmt.Sprintf("sha256:%x", sha256.Sum256(data))] = data
		}
	}
	r := m.runs[a.Run]
	if r == nil {
		return tenon.Errorf(tenon.CodeNotFound, "no run %s", a.Run)
	}
	r.events = append(r.events, a.Events...)
	r.row.Seq = uint64(len(r.events))
	if a.State != "" {
		r.row.State, r.row.Stop, r.row.Waiting = a.State, a.Stop, a.Waiting
	}
	return nil
}

// Events implements [store.Journal].
func (m *memoryStore) Events(_ context.Context, run string, after uint64, limit int) ([]tenon.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[run]
	if r == nil {
		return nil, tenon.Errorf(tenon.CodeNotFound, "no run %s", run)
	}
	events := r.events[min(after, uint64(len(r.events))):]
	if limit > 0 {
		events = events[:min(limit, len(events))]
	}
	return slices.Clone(events), nil
}

// Run implements [store.Journal].
func (m *memoryStore) Run(_ context.Context, id string) (tenon.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[id]; r != nil {
		return r.row, nil
	}
	return tenon.Run{}, tenon.Errorf(tenon.CodeNotFound, "no run %s", id)
}

// Runs implements [store.Journal].
func (m *memoryStore) Runs(context.Context, store.RunFilter) ([]tenon.Run, error) { return nil, nil }

// Signals implements [store.Inbox].
func (m *memoryStore) Signals(context.Context, string) ([]store.Signal, error) { return nil, nil }

// Acquire implements [store.Leases].
func (m *memoryStore) Acquire(string) (func(), bool, error) { return func() {}, true, nil }

// Held implements [store.Leases].
func (m *memoryStore) Held(string) (bool, error) { return false, nil }

// Changed implements [store.Leases]. No other process changes the store.
func (m *memoryStore) Changed(context.Context) <-chan struct{} { return make(chan struct{}) }

// PutBlob implements [store.Blobs].
func (m *memoryStore) PutBlob(_ context.Context, _ string, data []byte) (string, error) {
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.blobs[digest] = data
	return digest, nil
}

// Blob implements [store.Blobs].
func (m *memoryStore) Blob(_ context.Context, digest string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b, ok := m.blobs[digest]; ok {
		return b, nil
	}
	return nil, tenon.Errorf(tenon.CodeNotFound, "no blob %s", digest)
}

// PutSession implements [store.Sessions].
func (m *memoryStore) PutSession(context.Context, tenon.Session) error { return nil }

// Session implements [store.Sessions]. There are no sessions.
func (m *memoryStore) Session(_ context.Context, id string) (tenon.Session, error) {
	return tenon.Session{}, tenon.Errorf(tenon.CodeNotFound, "no session %s", id)
}

// Sessions implements [store.Sessions].
func (m *memoryStore) Sessions(context.Context, store.SessionFilter) ([]tenon.Session, error) {
	return nil, nil
}

// ImportSession implements [store.Sessions]. Imports are not supported.
func (m *memoryStore) ImportSession(context.Context, store.Import) error {
	return tenon.Errorf(tenon.CodeInternal, "imports into the memory store are not supported")
}

// DeleteSession implements [store.Sessions]. There are no sessions.
func (m *memoryStore) DeleteSession(_ context.Context, id string) error {
	return tenon.Errorf(tenon.CodeNotFound, "no session %s", id)
}

// DeleteSessions implements [store.Sessions]. There are no sessions.
func (m *memoryStore) DeleteSessions(context.Context, []tenon.Session, func(int)) ([]tenon.Session, error) {
	return nil, nil
}

// Probe implements [store.Health].
func (m *memoryStore) Probe(context.Context) error { return nil }

// Usage implements [store.Health].
func (m *memoryStore) Usage() store.Usage { return store.Usage{Free: -1} }

// Close implements [store.Store].
func (m *memoryStore) Close() error { return nil }

var _ store.Store = (*memoryStore)(nil)
