package host

import (
	"cmp"
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/catalog"
	"github.com/tenonhq/tenon/engine"
)

// Problem is a server whose tools are missing, or a tool that had to be left out.
type Problem struct {
	Server string
	Err    error
}

// Tools connects to the servers that are needed and returns what they offer, as
// one snapshot. Servers that cannot be reached are problems, not errors: the
// others' tools are there. Names, if given, are the servers to ask; else all.
// The error has code unreachable if a required server cannot be reached.
func (h *Host) Tools(ctx context.Context, names ...string) (*catalog.Snapshot, []Problem, error) {
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(h.toolsets))
	}
	type answer struct {
		tools []tenon.Tool
		err   error
	}
	answers := make([]answer, len(names))
	// Starting a process costs CPU: twice the cores at a time is the fastest.
	limit := make(chan struct{}, 2*runtime.NumCPU())
	var wg sync.WaitGroup
	for i, name := range names {
		t, ok := h.toolsets[name]
		if !ok {
			return nil, nil, tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'; servers: %v", name, slices.Sorted(maps.Keys(h.toolsets)))
		}
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			answers[i].tools, answers[i].err = t.Tools(ctx)
		})
	}
	wg.Wait()
	var sources []catalog.Source
	var problems []Problem
	for i, name := range names {
		entry, configured := h.config.Servers[name]
		if err := answers[i].err; err != nil {
			if configured && entry.Required {
				return nil, nil, tenon.Errorf(tenon.ErrorCode(err), "server '%s' is required: %w", name, err)
			}
			problems = append(problems, Problem{name, err})
			continue
		}
		s := catalog.Source{Server: name, Trusted: true, Tools: answers[i].tools}
		if configured {
			s.Trusted, s.Include, s.Exclude = entry.IsTrusted(), entry.Include, entry.Exclude
		}
		sources = append(sources, s)
	}
	snapshot, errs := catalog.Build(sources, h.overlays())
	for _, err := range errs {
		problems = append(problems, Problem{"", err})
	}
	return snapshot, problems, nil
}

func (h *Host) overlays() []catalog.Overlay {
	var list []catalog.Overlay
	for name, t := range h.config.Tools {
		t = t.WithDefaults(name)
		list = append(list, catalog.Overlay{Name: name, Server: t.Server, Remote: t.RemoteName,
			Description: t.Description, Annotate: t.Annotations.Over})
	}
	slices.SortFunc(list, func(a, b catalog.Overlay) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// start begins a run with a snapshot, nil for none, which is stored in the same
// commit as the run. One that was stored before is named only; it is gone where
// the runs that had it were deleted since.
func (h *Host) start(ctx context.Context, spec engine.Spec, s *catalog.Snapshot) error {
	if s == nil {
		return h.engine.Start(ctx, spec)
	}
	if h.isStored(s.Digest()) {
		spec.Uses = []string{s.Digest()}
		if err := h.engine.Start(ctx, spec); tenon.ErrorCode(err) != tenon.CodeNotFound {
			return err
		}
		spec.Uses = nil
	}
	spec.Blobs = [][]byte{s.Encode()}
	if err := h.engine.Start(ctx, spec); err != nil {
		return err
	}
	h.markStored(s.Digest())
	return nil
}

func (h *Host) isStored(digest string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.stored[digest]
	return ok
}

func (h *Host) markStored(digest string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.stored) >= maxSnapshots {
		clear(h.stored)
	}
	h.stored[digest] = struct{}{}
}

// maxSnapshots bounds what is kept in memory; a host sees few different ones.
const maxSnapshots = 64

func (h *Host) remember(digest string, s *catalog.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.snapshots) >= maxSnapshots {
		clear(h.snapshots)
	}
	h.snapshots[digest] = s
}

// snapshot returns the tools that a run began with.
func (h *Host) snapshot(ctx context.Context, digest string) (*catalog.Snapshot, error) {
	h.mu.Lock()
	s, ok := h.snapshots[digest]
	h.mu.Unlock()
	if ok {
		return s, nil
	}
	if digest == "" {
		s, _ = catalog.Build(nil, nil)
		return s, nil
	}
	raw, err := h.store.Blob(ctx, digest)
	if err != nil {
		return nil, err
	}
	if s, err = catalog.Decode(raw); err != nil {
		return nil, err
	}
	h.remember(digest, s)
	return s, nil
}
