package host

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/engine/local"
	"github.com/tenonhq/tenon/view"
)

// Cluster is a system of other processes that work on runs, such as Temporal: package engine/temporal, a module of its
// own, has one. The runs stay in the store.
//
//	engine ─► dispatcher (adds the label) ─► Cluster.Dispatch ─► … ─► Cluster.Work in a worker ─► engine.Drive
type Cluster interface {
	// Ready reports whether the cluster can be used. Errors: unreachable, config, auth_required.
	Ready(ctx context.Context) error
	// Dispatch lets a worker with the label, or any worker if it is empty, drive a run; see [local.Dispatcher].
	Dispatch(ctx context.Context, row tenon.Run, label string) error
	// Work lets the driver drive the runs for any worker, and those for the labels, until ctx ends.
	Work(ctx context.Context, d local.Driver, labels ...string) error
	Close() error
}

// ClusterConfig is engine.temporal of a configuration, with its secrets and absolute paths.
type ClusterConfig struct {
	config.Temporal
	APIKey, CodecKey string
	Version          string // of tenon
	Logger           *slog.Logger
}

// clusterPause is the pause before a worker tries again after an error of the cluster.
const clusterPause = 5 * time.Second

// openCluster opens the cluster that the configuration names. A worker also looks whether it answers. A host that only
// reads, or shows an untrusted configuration, needs none.
func (h *Host) openCluster(ctx context.Context) error {
	switch {
	case !h.config.Engine.IsTemporal() && h.cfg.Worker:
		return tenon.Errorf(tenon.CodeConfig, "a worker needs engine: {kind: temporal}")
	case !h.config.Engine.IsTemporal() || h.cfg.ReadOnly || h.cfg.Untrusted:
		return nil
	case h.cfg.Cluster == nil:
		return tenon.Errorf(tenon.CodeConfig, "engine.kind is temporal (%s), which this program cannot use; use "+
			"tenon-temporal, which has the same commands, or engine: {kind: local}", h.config.Origin("engine.kind"))
	case !h.cfg.isPostgres():
		return tenon.Errorf(tenon.CodeConfig, "engine.kind is temporal (%s), which needs the store in PostgreSQL; add "+
			"store.postgres", h.config.Origin("engine.kind"))
	}
	api, codec, err := h.config.TemporalSecrets(ctx)
	if err != nil {
		return err
	}
	h.redactor.Add(api)
	h.redactor.Add(codec)
	t := h.config.Engine.Temporal
	t.CA, t.Cert, t.Key = h.config.ResolvePath(t.CA), h.config.ResolvePath(t.Cert), h.config.ResolvePath(t.Key)
	h.cluster, err = h.clusterOf(ctx, ClusterConfig{Temporal: t, APIKey: api.Reveal(), CodecKey: codec.Reveal(),
		Version: h.cfg.Version, Logger: h.log})
	if err == nil && h.cfg.Worker {
		err = h.cluster.Ready(ctx)
	}
	return err
}

func (h *Host) closeCluster() error {
	if h.cluster == nil {
		return nil
	}
	return h.cluster.Close()
}

// dispatcher gives the runs of a host to its cluster.
type dispatcher struct{ host *Host }

// Ready implements [local.Dispatcher].
func (d dispatcher) Ready(ctx context.Context) error { return d.host.cluster.Ready(ctx) }

// Keeps implements [local.Dispatcher]: credentials and toolsets that came with a question are in this process only.
func (d dispatcher) Keeps(run tenon.Run) bool {
	root := tenon.RootRun(run.ID)
	return d.host.brought.holds(root) || len(d.host.given.all(root)) > 0
}

// Dispatch implements [local.Dispatcher].
func (d dispatcher) Dispatch(ctx context.Context, row tenon.Run) error {
	label := ""
	if !row.State.Ended() {
		var err error
		if label, err = d.host.labelOf(ctx, row.ID); err != nil {
			return err
		}
	}
	return d.host.cluster.Dispatch(ctx, row, label)
}

// labelOf returns the label of the servers of a run that exist on some machines only, or "". Of several labels, the
// first by name counts: no worker may have them all, which the worker then reports.
func (h *Host) labelOf(ctx context.Context, run string) (string, error) {
	labels := map[string]string{}
	for name, s := range h.config.Servers {
		if s.Replica != "" {
			labels[name] = s.Replica
		}
	}
	if len(labels) == 0 {
		return "", nil
	}
	events, err := h.store.Events(ctx, run, 0, 1)
	if err != nil {
		return "", err
	}
	_, needs, err := view.FirstSpec[struct{ Tools string }](run, events)
	if err != nil || needs.Tools == "" {
		return "", err
	}
	snapshot, err := h.snapshot(ctx, needs.Tools)
	if err != nil {
		return "", err
	}
	label := ""
	for _, t := range snapshot.Tools() {
		if l := labels[t.Server]; l != "" && (label == "" || l < label) {
			label = l
		}
	}
	return label, nil
}

// workForCluster works on the runs that the cluster gives to this process, until ctx ends.
func (h *Host) workForCluster(ctx context.Context) {
	for {
		err := h.cluster.Work(ctx, clusterDriver{h}, slices.Clone(h.config.Serve.Replica)...)
		if ctx.Err() != nil {
			return
		}
		h.log.Warn("this worker gets no runs at present, and tries again", "error", err, "again_in", clusterPause)
		select {
		case <-time.After(clusterPause):
		case <-ctx.Done():
			return
		}
	}
}

// clusterDriver drives runs after a look whether this host has their model, servers and credentials.
type clusterDriver struct{ host *Host }

// Drive implements [local.Driver].
func (d clusterDriver) Drive(ctx context.Context, run string) (local.Rest, error) {
	row, err := d.host.store.Run(ctx, run)
	if err != nil {
		return local.Rest{}, err
	}
	if !row.State.Ended() {
		lack, err := d.host.fit(ctx, row)
		if err != nil {
			return local.Rest{}, err
		}
		if lack != nil {
			lack = tenon.Errorf(tenon.ErrorCode(lack), "run %s is not resumed: %w", run, lack)
			d.host.engine.Leave(run, lack)
			return local.Rest{}, lack
		}
	}
	return d.host.engine.Drive(ctx, run)
}

// Cancel implements [local.Driver].
func (d clusterDriver) Cancel(ctx context.Context, run, reason string) error {
	return d.host.engine.Cancel(ctx, run, reason)
}

var (
	_ local.Dispatcher = dispatcher{}
	_ local.Driver     = clusterDriver{}
)
