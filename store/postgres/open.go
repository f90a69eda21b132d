package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/signed"
)

// Config configures a store.
type Config struct {
	// DSN is the connection string: a URL (postgres://user:password@host/db?sslmode=verify-full) or words (host=…
	// user=…). It may name pgbouncer in transaction mode.
	DSN string
	// Direct is the connection string of the connection that listens for notifications. It must not name a pooler. If
	// empty, DSN is used. If the connection cannot listen, changes by other replicas are detected by a poll.
	Direct string
	Schema string        // schema of the tables; if empty, tenon
	Lease  time.Duration // time after which a silent replica loses its runs; if 0, 10 s
	Conns  int           // maximum number of connections without the one that listens; if 0, 8
	Logger *slog.Logger  // if nil, nothing is logged
	Now    func() time.Time
	// Key signs each written row and checks each read row. If nil, rows are neither signed nor checked.
	Key *signed.Key
	// Moving means that the caller copies the store; see [store.Movable]. It can write to a store that was moved, and
	// open a store that is being filled.
	Moving bool

	// dial replaces the dialer in tests, and patience replaces the constant.
	dial     func(ctx context.Context, network, addr string) (net.Conn, error)
	patience time.Duration
}

const (
	defaultSchema = "tenon"
	defaultLease  = 10 * time.Second
	defaultConns  = 8
	minLease      = 100 * time.Millisecond
)

// Store is an open store. It is safe for concurrent use.
type Store struct {
	name     string // for messages, without a password
	schema   string // quoted
	channel  string // channel of notifications
	log      *slog.Logger
	now      func() time.Time
	key      *signed.Key
	lease    time.Duration
	replica  string        // random id of this process
	moving   bool          // Config.Moving
	patience time.Duration // how long a write is tried, and then looked up
	// limbo is the number of the last append of which it is not known whether it was stored, or 0; see [Store.settled].
	limbo   atomic.Int64
	unnamed atomic.Bool // no statement is prepared; see [tx.prepared]

	pool  *pgxpool.Pool
	calls gathers    // calls that share statements
	texts sync.Map   // statement with @ → statement with the schema
	slots chan *slot // connections for transactions with a single write

	ops      chan *op
	quit     chan struct{}      // closed when no more writes may begin
	ctx      context.Context    // context of the store's goroutines
	stop     context.CancelFunc // ends ctx
	owned    sync.WaitGroup     // waits for the goroutines
	close    sync.Once
	watch    watch
	live     liveState
	hint     chan struct{} // signals that there is a change to notify others of
	renew    chan struct{} // signals that a write waits for expired leases
	failed   atomic.Uint64 // number of failed writes
	size     atomic.Int64  // number of live replicas that search, at the last heartbeat
	searches atomic.Int64  // number of searches of this process

	mu      sync.Mutex
	address string           // where other replicas reach this one; empty if they do not
	leases  map[string]int64 // run → epoch of this store's lease; 0 while it is acquired
	known   map[string]known // positions of runs with a lease of this store, as of its last write
	era     int64            // the last era in which this store looked at a lease; 0 if it is in doubt
	// guessed are the runs of the write under way that relies on known. guessing is closed at its end.
	guessed  map[string]bool
	guessing chan struct{}
	// releasing are runs whose leases are being deleted. Their positions are not known.
	releasing map[string]bool
	probed    time.Time // time until which the last result is valid
	health    error
}

// Open opens a store. It creates the tables in an empty database. Errors: invalid (the DSN, the schema), store (the
// message says what to do).
func Open(ctx context.Context, c Config) (_ *Store, err error) {
	if c.DSN == "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "store: the DSN of PostgreSQL is missing")
	}
	conf, err := poolConfig(&c)
	if err != nil {
		return nil, err
	}
	s := newStore(&c, conf.ConnConfig)
	if strings.ContainsAny(c.Schema, "\x00\"@") || len(c.Schema) > 60 {
		return nil, tenon.Errorf(tenon.CodeInvalid, "store %s: %q cannot be the name of a schema", s.name, c.Schema)
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, conf); err != nil {
		return nil, s.storeError("connect", err)
	}
	defer func() {
		if err != nil {
			s.stop()
			s.pool.Close()
		}
	}()
	if err := s.migrate(ctx); err != nil {
		return nil, err
	}
	if err := s.openMove(ctx); err != nil {
		return nil, err
	}
	if err := s.register(ctx, conf.MaxConns); err != nil {
		return nil, s.storeError("register this replica", err)
	}
	if err := s.greet(ctx); err != nil {
		return nil, err
	}
	seen, err := s.others(ctx)
	if err != nil {
		return nil, err
	}
	direct := conf.ConnConfig
	if c.Direct != "" {
		if direct, err = connConfig(c.Direct, c.dial); err != nil {
			return nil, err
		}
	}
	s.owned.Go(s.write)
	s.owned.Go(s.beat)
	s.owned.Go(s.notifyOthers)
	s.owned.Go(s.readLiveEvents)
	s.owned.Go(func() { s.listen(direct) })
	s.owned.Go(func() { s.poll(seen) })
	return s, nil
}

func newStore(c *Config, conn *pgx.ConnConfig) *Store {
	if c.Schema == "" {
		c.Schema = defaultSchema
	}
	s := &Store{name: fmt.Sprintf("postgres://%s:%d/%s", conn.Host, conn.Port, conn.Database),
		schema: pgx.Identifier{c.Schema}.Sanitize(), channel: "tenon_" + c.Schema, log: c.Logger, now: c.Now,
		key: c.Key, moving: c.Moving,
		lease: max(c.Lease, minLease), ops: make(chan *op, maxBatch), quit: make(chan struct{}),
		live: newLive(), hint: make(chan struct{}, 1), renew: make(chan struct{}, 1), leases: map[string]int64{},
		known: map[string]known{}, releasing: map[string]bool{}, patience: cmp.Or(c.patience, patience)}
	if c.Lease <= 0 {
		s.lease = defaultLease
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	id := make([]byte, 12)
	_, _ = rand.Read(id) // never fails
	s.replica = hex.EncodeToString(id)
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.calls = s.newGathers()
	return s
}

// connConfig parses a DSN. Statements are not prepared. Connections therefore have no state, and a pooler may use
// another connection for each transaction.
func connConfig(dsn string, dial pgconn.DialFunc) (*pgx.ConnConfig, error) {
	conf, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errDSN(err)
	}
	statelessConn(conf, dial)
	return conf, nil
}

func poolConfig(c *Config) (*pgxpool.Config, error) {
	conf, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		return nil, errDSN(err)
	}
	statelessConn(conf.ConnConfig, c.dial)
	conf.MaxConns = int32(max(2, c.Conns))
	if c.Conns <= 0 {
		conf.MaxConns = defaultConns
	}
	conf.MinConns = 0
	return conf, nil
}

func statelessConn(conf *pgx.ConnConfig, dial pgconn.DialFunc) {
	conf.DefaultQueryExecMode = pgx.QueryExecModeExec
	conf.StatementCacheCapacity, conf.DescriptionCacheCapacity = 0, 0
	if conf.ConnectTimeout == 0 {
		conf.ConnectTimeout = 10 * time.Second
	}
	if dial != nil {
		conf.DialFunc = dial
	}
}

// errDSN returns an error for a DSN that cannot be parsed. The error does not contain the DSN, because the DSN may
// contain a password.
func errDSN(err error) error {
	_, why, _ := strings.Cut(err.Error(), "`: ")
	if why == "" {
		why = "it has neither the form postgres://user:password@host:5432/database nor host=… dbname=…"
	}
	return tenon.Errorf(tenon.CodeInvalid, "store: the DSN of PostgreSQL is wrong: %s", why)
}

// register adds this process to the replicas. Each of its connections that write gets a row.
func (s *Store) register(ctx context.Context, conns int32) error {
	host, _ := os.Hostname() // only shown to people
	if _, err := s.pool.Exec(ctx, s.sql(`INSERT INTO @replicas (id, name, began, expires, searches)
		VALUES ($1, $2, clock_timestamp(), clock_timestamp() + $3 * interval '1 microsecond', false)`),
		s.replica, plainText(fmt.Sprintf("%s/%d", host, os.Getpid())), s.lease.Microseconds()); err != nil {
		return err
	}
	n := max(1, int(conns)-2) // the others are for appends and for reads
	s.slots = make(chan *slot, n)
	for i := range n {
		s.slots <- &slot{id: i + 1}
	}
	_, err := s.pool.Exec(ctx, s.sql(`INSERT INTO @writers (replica, slot, n, era)
		SELECT $1, i, 0, `+newEra+` FROM generate_series(0, $2::int) i`), s.replica, n)
	return err
}

// Close waits for the writes under way and then releases the leases. Later writes fail.
func (s *Store) Close() error {
	s.close.Do(func() {
		close(s.quit)
		s.calls.shut()
		s.stop()
		s.owned.Wait()
		for range cap(s.slots) {
			<-s.slots // waits for a write under way
		}
		s.leave()
		s.watch.notify()
		s.pool.Close()
	})
	return nil
}

// leave deletes the rows of this replica. If the database cannot be reached, they expire.
func (s *Store) leave() {
	ctx, stop := context.WithTimeout(context.Background(), s.lease)
	defer stop()
	if ok, _ := s.settled(ctx); !ok {
		s.log.Debug("an append may be under way, so this replica is not removed; its row expires", "store", s.name)
		return
	}
	for _, table := range []string{"@follows WHERE replica", "@live WHERE target",
		"@leases WHERE " + isOwn("$1") + " AND owner",
		"@writers WHERE replica", "@replicas WHERE id"} {
		if _, err := s.pool.Exec(ctx, s.sql("DELETE FROM "+table+" = $1"), s.replica); err != nil {
			s.log.Debug("this replica is not removed; its row expires", "store", s.name, "error", err.Error())
			return
		}
	}
}

// sql inserts the schema into a statement.
func (s *Store) sql(query string) string {
	if q, ok := s.texts.Load(query); ok {
		text, _ := q.(string)
		return text
	}
	q := strings.ReplaceAll(strings.ReplaceAll(query, "@@", s.schema), "@", s.schema+".")
	s.texts.Store(query, q)
	return q
}

var _ store.Store = (*Store)(nil)
