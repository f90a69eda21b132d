package postgres

import (
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

// Config says where the store is.
type Config struct {
	// DSN is the connection: a URL (postgres://user:password@host/db?sslmode=verify-full) or words (host=… user=…). It
	// may lead to pgbouncer in transaction mode.
	DSN string
	// Direct is the connection that listens, without a pooler. Empty: DSN. If it cannot listen, changes by other
	// replicas are found by a poll.
	Direct string
	Schema string        // of the tables; "" means tenon
	Lease  time.Duration // how long a replica that is silent keeps its runs; 0 means 10 s
	Conns  int           // the maximum number of connections, besides the one that listens; 0 means 8
	Logger *slog.Logger  // nil: discard
	Now    func() time.Time
	// Key signs each written row and checks each read row. If nil, rows are neither signed nor checked.
	Key *signed.Key
	// Moving says that the caller copies the store: see [store.Movable]. It may write to a store that was moved, and
	// open one that is being filled.
	Moving bool

	// dial replaces the dialer, in tests.
	dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

const (
	defaultSchema = "tenon"
	defaultLease  = 10 * time.Second
	defaultConns  = 8
	minLease      = 100 * time.Millisecond
)

// Store is an open store. It is safe for concurrent use.
type Store struct {
	name    string // for messages: never with a password
	schema  string // quoted
	channel string // of NOTIFY
	log     *slog.Logger
	now     func() time.Time
	key     *signed.Key
	lease   time.Duration
	replica string // this process
	moving  bool   // see Config

	pool  *pgxpool.Pool
	texts sync.Map   // of statements: with @ → with the schema
	slots chan *slot // for single writes

	ops    chan *op
	quit   chan struct{}      // closed: no more writes
	ctx    context.Context    // of the goroutines
	stop   context.CancelFunc // ends ctx
	owned  sync.WaitGroup     // the goroutines
	close  sync.Once
	watch  watch
	live   liveState
	hint   chan struct{} // there is something to notify of
	renew  chan struct{} // the leases have expired, and a write waits
	failed atomic.Uint64 // writes

	mu     sync.Mutex
	leases map[string]int64 // run → epoch of the leases of this store; 0: being acquired
	probed time.Time        // until when the result of the last probe holds
	health error
}

// Open opens a store, and creates its tables in an empty database. Errors: invalid (the DSN, the schema), store (with
// what to do).
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
		live: newLive(), hint: make(chan struct{}, 1), renew: make(chan struct{}, 1), leases: map[string]int64{}}
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
	return s
}

// connConfig reads a DSN. Connections have no state: statements are not prepared, so that a pooler may change the
// connection between two transactions.
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

// errDSN returns the error for a DSN without the DSN, which has a password.
func errDSN(err error) error {
	_, why, _ := strings.Cut(err.Error(), "`: ")
	if why == "" {
		why = "it has neither the form postgres://user:password@host:5432/database nor host=… dbname=…"
	}
	return tenon.Errorf(tenon.CodeInvalid, "store: the DSN of PostgreSQL is wrong: %s", why)
}

// register adds this process to the replicas, with a row for each connection that writes.
func (s *Store) register(ctx context.Context, conns int32) error {
	host, _ := os.Hostname() // only for people
	if _, err := s.pool.Exec(ctx, s.sql(`INSERT INTO @replicas (id, name, began, expires)
		VALUES ($1, $2, clock_timestamp(), clock_timestamp() + $3 * interval '1 microsecond')`),
		s.replica, plainText(fmt.Sprintf("%s/%d", host, os.Getpid())), s.lease.Microseconds()); err != nil {
		return err
	}
	n := max(1, int(conns)-2) // the rest is for the writer of appends, and for reads
	s.slots = make(chan *slot, n)
	for i := range n {
		s.slots <- &slot{id: i + 1}
	}
	_, err := s.pool.Exec(ctx, s.sql(`INSERT INTO @writers SELECT $1, i, 0 FROM generate_series(0, $2::int) i`),
		s.replica, n)
	return err
}

// Close waits for the writes that are under way. Later ones fail. Leases end.
func (s *Store) Close() error {
	s.close.Do(func() {
		close(s.quit)
		s.stop()
		s.owned.Wait()
		for range cap(s.slots) {
			<-s.slots // of writes under way
		}
		s.leave()
		s.watch.notify()
		s.pool.Close()
	})
	return nil
}

// leave removes this replica. If the database cannot be reached, its rows expire.
func (s *Store) leave() {
	ctx, stop := context.WithTimeout(context.Background(), s.lease)
	defer stop()
	for _, table := range []string{"@follows WHERE replica", "@live WHERE target", "@leases WHERE owner",
		"@writers WHERE replica", "@replicas WHERE id"} {
		if _, err := s.pool.Exec(ctx, s.sql("DELETE FROM "+table+" = $1"), s.replica); err != nil {
			s.log.Debug("this replica is not removed; its row expires", "store", s.name, "error", err.Error())
			return
		}
	}
}

// sql puts the schema into a statement.
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
