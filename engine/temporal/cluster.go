package temporal

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"sync"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tenonhq/tenon"
)

// Config names a Temporal cluster and the place of tenon's workflows in it. The zero value is a server on this
// machine.
type Config struct {
	Address   string // host and port of the frontend; 127.0.0.1:7233 if empty
	Namespace string // "default" if empty
	TaskQueue string // "tenon" if empty
	TLS       *tls.Config
	APIKey    string
	// Key encrypts the payloads of histories: 32 bytes. If empty, they are plain: ids, numbers and states.
	Key []byte
	// Plain reports that runs get no search attributes, which are never encrypted.
	Plain bool
	// Deployment is the name of a worker deployment. If it is set, the workers are versioned, with Build as their
	// version; workflows continue with the current version.
	Deployment, Build string
	Heartbeat         time.Duration // silence after which a worker counts as dead; 0 means 10 s
	Parallel          int           // runs that a worker drives at a time; 0 means 100
	Logger            *slog.Logger  // if nil, nothing is logged
}

// Search attributes of a run's workflow.
var (
	keyAgent     = temporal.NewSearchAttributeKeyKeyword("TenonAgent")
	keySession   = temporal.NewSearchAttributeKeyKeyword("TenonSession")
	keyPrincipal = temporal.NewSearchAttributeKeyKeyword("TenonPrincipal")
	keyState     = temporal.NewSearchAttributeKeyKeyword("TenonState")
)

const (
	// readyFor is how long a cluster that answered counts as ready.
	readyFor = 10 * time.Second
	// readyTime and dispatchTime bound the requests to the cluster.
	readyTime    = 5 * time.Second
	dispatchTime = 10 * time.Second
)

// Cluster is a connection to a Temporal cluster. It is safe for concurrent use.
type Cluster struct {
	cfg    Config
	client client.Client

	mu         sync.Mutex
	readied    time.Time
	attributes bool // the namespace has our search attributes
	looked     bool // attributes is known
}

// New prepares a connection, and does not connect. Errors: config.
func New(cfg Config) (*Cluster, error) {
	orElse(&cfg.Address, "127.0.0.1:7233")
	orElse(&cfg.Namespace, "default")
	orElse(&cfg.TaskQueue, "tenon")
	if cfg.Heartbeat <= 0 {
		cfg.Heartbeat = 10 * time.Second
	}
	if cfg.Parallel <= 0 {
		cfg.Parallel = 100
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	o := client.Options{HostPort: cfg.Address, Namespace: cfg.Namespace,
		Logger: sdklog.NewStructuredLogger(cfg.Logger.With("of", "temporal"))}
	o.ConnectionOptions.TLS = cfg.TLS
	if cfg.APIKey != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(cfg.APIKey)
	}
	if len(cfg.Key) > 0 {
		codec, err := newCodec(cfg.Key)
		if err != nil {
			return nil, err
		}
		o.DataConverter = converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), codec)
		o.FailureConverter = temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
			DataConverter: o.DataConverter, EncodeCommonAttributes: true})
	}
	c, err := client.NewLazyClient(o)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeConfig, "engine.temporal: %w", err)
	}
	return &Cluster{cfg: cfg, client: c}, nil
}

func orElse(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// Close closes the connection.
func (c *Cluster) Close() error {
	c.client.Close()
	return nil
}

// Ready reports whether the cluster answers and has the namespace. Errors: unreachable, config (no such namespace),
// auth_required (the key is refused).
func (c *Cluster) Ready(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.readied) < readyFor {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, readyTime)
	defer stop()
	_, err := c.client.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: c.cfg.Namespace})
	if err != nil {
		return c.explain(err)
	}
	if !c.looked {
		c.attributes, c.looked = c.register(ctx), true
	}
	c.readied = time.Now()
	return nil
}

// register adds the search attributes to the namespace. It reports whether the namespace has them.
func (c *Cluster) register(ctx context.Context) bool {
	if c.cfg.Plain {
		return false
	}
	want := map[string]enums.IndexedValueType{}
	for _, k := range []temporal.SearchAttributeKeyKeyword{keyAgent, keySession, keyPrincipal, keyState} {
		want[k.GetName()] = enums.INDEXED_VALUE_TYPE_KEYWORD
	}
	op := c.client.OperatorService()
	has, err := op.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: c.cfg.Namespace})
	if err == nil {
		for name := range want {
			if _, ok := has.CustomAttributes[name]; ok {
				delete(want, name)
			}
		}
		if len(want) == 0 {
			return true
		}
		_, err = op.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: c.cfg.Namespace,
			SearchAttributes: want})
	}
	if err != nil && !errors.As(err, new(*serviceerror.AlreadyExists)) {
		c.cfg.Logger.Warn("Temporal's pages cannot find runs by agent, session, principal and state: the search "+
			"attributes TenonAgent, TenonSession, TenonPrincipal and TenonState (keyword) are missing and cannot be "+
			"added; add them with: temporal operator search-attribute create", "namespace", c.cfg.Namespace,
			"error", err)
		return false
	}
	return true
}

// Dispatch starts the workflow of a run, or tells it about the run's last event. Only workers with the label take the
// run. It returns the errors of [Cluster.Ready].
func (c *Cluster) Dispatch(ctx context.Context, row tenon.Run, label string) error {
	if err := c.Ready(ctx); err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(ctx, dispatchTime)
	defer stop()
	n := nudge{Seq: row.Seq, Label: label, Ended: row.State.Ended()}
	if n.Ended {
		err := c.client.SignalWorkflow(ctx, row.ID, "", nudgeName, n)
		if errors.As(err, new(*serviceerror.NotFound)) {
			return nil
		}
		return c.explain(err)
	}
	in := input{Run: row.ID, Queue: c.cfg.TaskQueue, Label: label, Heartbeat: c.cfg.Heartbeat, Attributes: c.attributes,
		State: tenon.RunWorking}
	o := client.StartWorkflowOptions{ID: row.ID, TaskQueue: c.cfg.TaskQueue,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE}
	if c.attributes {
		o.TypedSearchAttributes = temporal.NewSearchAttributes(keyAgent.ValueSet(row.Agent),
			keySession.ValueSet(row.Session), keyPrincipal.ValueSet(string(row.Owner())),
			keyState.ValueSet(string(tenon.RunWorking)))
	}
	_, err := c.client.SignalWithStartWorkflow(ctx, row.ID, nudgeName, n, o, workflowName, in)
	return c.explain(err)
}

// explain returns an error of the client as one of tenon.
func (c *Cluster) explain(err error) error {
	if err == nil {
		return nil
	}
	at := "Temporal at " + c.cfg.Address
	switch status.Code(err) {
	case codes.PermissionDenied, codes.Unauthenticated:
		return tenon.Errorf(tenon.CodeAuth, "%s refuses access to namespace '%s': %w; correct "+
			"engine.temporal.api_key, or engine.temporal.tls", at, c.cfg.Namespace, err)
	}
	var denied *serviceerror.PermissionDenied
	var missing *serviceerror.NamespaceNotFound
	switch {
	case errors.As(err, &denied):
		return tenon.Errorf(tenon.CodeAuth, "%s refuses access to namespace '%s': %w; correct "+
			"engine.temporal.api_key", at, c.cfg.Namespace, err)
	case errors.As(err, &missing):
		return tenon.Errorf(tenon.CodeConfig, "%s has no namespace '%s'; correct engine.temporal.namespace, or create "+
			"that namespace with Temporal's command line", at, c.cfg.Namespace)
	}
	return tenon.Errorf(tenon.CodeUnreachable, "%s cannot be used: %w; start it, or correct "+
		"engine.temporal.address", at, err)
}
