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

// memoryStore is the least that a host takes for a store: journals and blobs in
// memory, no sessions, and nobody who signals.
type memoryStore struct {
	store.Inbox   // without any signals, so none of its other methods is called
	grants        // nobody asks for one
	store.Budgets // nothing is limited
	store.Texts   // nobody looks for anything
	store.Results // nothing is kept
	store.Rates   // nothing has one
	pins          // no server is configured

	mu    sync.Mutex
	runs  map[string]*memoryRun
	spare []tenon.Event // the room that a run had which is forgotten
	blobs map[string][]byte
}

// grants and pins are embedded under names that are not those of their methods.
type (
	grants = store.Grants
	pins   = store.Pins
)

type memoryRun struct {
	row    tenon.Run
	events []tenon.Event
}

func newMemoryStore() *memoryStore {
	return &memoryStore{runs: map[string]*memoryRun{}, blobs: map[string][]byte{}}
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

// Changed implements [store.Leases]: nothing is changed by anybody else.
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

// Session implements [store.Sessions]: there is none.
func (m *memoryStore) Session(_ context.Context, id string) (tenon.Session, error) {
	return tenon.Session{}, tenon.Errorf(tenon.CodeNotFound, "no session %s", id)
}

// Sessions implements [store.Sessions].
func (m *memoryStore) Sessions(context.Context, store.SessionFilter) ([]tenon.Session, error) {
	return nil, nil
}

// ImportSession implements [store.Sessions]: nothing is imported.
func (m *memoryStore) ImportSession(context.Context, store.Import) error {
	return tenon.Errorf(tenon.CodeInternal, "nothing is imported into memory")
}

// DeleteSession implements [store.Sessions]: there is none.
func (m *memoryStore) DeleteSession(_ context.Context, id string) error {
	return tenon.Errorf(tenon.CodeNotFound, "no session %s", id)
}

// Close implements [store.Store].
func (m *memoryStore) Close() error { return nil }

var _ store.Store = (*memoryStore)(nil)
