package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
	"github.com/tenonhq/tenon/store/signed"
)

// Config configures a store.
type Config struct {
	Path   string       // path of the file; a missing folder is created
	Logger *slog.Logger // if nil, nothing is logged
	Now    func() time.Time
	// Key signs each written row and checks each read row. If nil, rows are neither signed nor checked.
	Key *signed.Key
	// Ledger records outside of the store what must not happen again. If nil, old rows of the user that somebody puts
	// back are accepted.
	Ledger *Ledger
	// ShortLived says that the process ends soon after Close, like a command. One connection then reads and writes, and
	// Close leaves it to the operating system once everything is written.
	ShortLived bool
	// ReadOnly says that the caller only reads. An existing store is then opened even if it is not writable, and every
	// write is an error of code store.
	ReadOnly bool
	// Moving says that the caller copies the store: see [store.Movable]. It may write to a store that was moved, and
	// open one that is being filled.
	Moving bool
}

// Store is an open store. It is safe for concurrent use.
type Store struct {
	path string
	log  *slog.Logger
	now  func() time.Time
	key  *signed.Key

	moving bool // see Config

	ledger *Ledger
	home   string // the path under which the ledger knows the store

	leases *leases
	write  *sql.DB // one connection, the writer's
	read   *sql.DB
	writer *writer
	conn   *sql.Conn     // the writer's
	turn   chan struct{} // held while conn is used; if nil, the writer's mutex is used instead

	mu       sync.Mutex
	prepared map[string]*sql.Stmt // for reading

	ops    chan *op
	pool   sync.Pool     // of *op
	packs  sync.Pool     // of *[]byte: packed events
	quit   chan struct{} // closed: no more writes
	ended  chan struct{} // closed: the writer has ended
	full   chan struct{} // receives a value when a checkpoint is due
	copies sync.WaitGroup
	close  sync.Once
	closed error
	watch  watch
	probe  probe
	soon   []*op // of a brief store: written together with the next write; used only by the holder of the turn
}

// readers is the maximum number of concurrent reads; further ones wait.
const readers = 4

// Open opens a store, or creates an empty one. Only the owner can read the file (mode 0600). Errors: invalid (no
// path), store (with what to do).
func Open(ctx context.Context, c Config) (*Store, error) {
	s, err := open(ctx, c, migrations, true)
	if err != nil && c.ReadOnly && tenon.ErrorCode(err) == tenon.CodeStore {
		if r, rerr := openReading(ctx, c); rerr == nil {
			r.log.Warn("the store cannot be written; it is shown as it is", "path", r.path)
			return r, nil
		} // err says more
	}
	return s, err
}

// open opens a store and applies the given migrations. full says that these are all migrations, so that a new store
// may begin as a copy of the empty store.
func open(ctx context.Context, c Config, steps []string, full bool) (_ *Store, err error) {
	if c.Path == "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "store: no path given")
	}
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "store %s: %w", c.Path, err)
	}
	s := &Store{
		path: path, log: c.Logger, now: c.Now, key: c.Key, ledger: c.Ledger, moving: c.Moving,
		prepared: map[string]*sql.Stmt{},
		ops:      make(chan *op, maxBatch), quit: make(chan struct{}), ended: make(chan struct{}),
		full: make(chan struct{}, 1),
	}
	s.watch.wake = make(chan struct{}, 1)
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	if err := s.prepareFiles(full); err != nil {
		return nil, err
	}
	if s.home, err = filepath.EvalSymlinks(path); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "store %s: %w; choose another place with --home", path, err)
	}
	if s.leases, err = openLeases(path + locksEnd); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "store %s: %w; choose another place with --home", path, err)
	}
	defer func() {
		if err != nil {
			_ = s.closeDBs() // err says more
		}
	}()
	if s.write, err = connect(path, 1, "foreign_keys(1)", "synchronous(FULL)", "secure_delete(1)",
		fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages), "journal_size_limit(67108864)",
		"journal_mode(WAL)"); err != nil {
		return nil, storeError(path, "open", err)
	}
	if s.read, err = connect(path, readers, "query_only(1)"); err != nil {
		return nil, storeError(path, "open", err)
	}
	if s.conn, err = s.firstConn(ctx); err != nil {
		return nil, storeError(path, "open", err)
	}
	if err := migrate(ctx, s.conn, path, steps, s.leases); err != nil {
		_ = s.conn.Close() // err says more
		return nil, err
	}
	if c.ShortLived {
		s.turn = make(chan struct{}, 1)
	}
	s.writer = newWriter(s, s.conn)
	if err := s.openMove(ctx, s.conn); err != nil {
		_ = s.conn.Close() // err says more
		return nil, err
	}
	if err := s.greet(ctx, s.conn); err != nil {
		_ = s.conn.Close() // err says more
		return nil, err
	}
	go s.writer.loop()
	s.copies.Go(s.checkpoint)
	if !c.ShortLived && len(steps) >= 9 {
		s.copies.Go(s.fillLater)
	}
	return s, nil
}

// locksEnd is appended to the store's name for the file of its leases.
const locksEnd = "-locks"

// prepareFiles creates the folder and the file.
func (s *Store) prepareFiles(full bool) error {
	err := os.MkdirAll(filepath.Dir(s.path), 0o700)
	if err == nil {
		err = makeFile(s.path, full)
	}
	var known *tenon.Error
	if errors.As(err, &known) {
		return err
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "store %s: %w; choose another place with --home", s.path, err)
	}
	return nil
}

// firstConn opens the writer's connection. It retries, because turning on WAL in a new file does not wait for other
// processes by itself.
func (s *Store) firstConn(ctx context.Context) (*sql.Conn, error) {
	for deadline := time.Now().Add(lockPatience); ; {
		conn, err := s.write.Conn(ctx)
		if err == nil || !isBusy(err) || time.Now().After(deadline) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func connect(path string, conns int, pragmas ...string) (*sql.DB, error) {
	return connectWith(path, conns, url.Values{"_pragma": append([]string{"busy_timeout(5000)"}, pragmas...)})
}

// connectWith opens a file with parameters of SQLite's URI.
func connectWith(path string, conns int, q url.Values) (*sql.DB, error) {
	d, err := summing()
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector{(&url.URL{Scheme: "file", Path: uriPath(path), RawQuery: q.Encode()}).String(), d})
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// uriPath returns a path in the form of a URI.
func uriPath(path string) string {
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // C:/…
	}
	return p
}

// sqlQuote escapes a text for use between the quotes of SQL.
func sqlQuote(text string) string { return strings.ReplaceAll(text, "'", "''") }

// Path returns the path of the file.
func (s *Store) Path() string { return s.path }

// Close waits for running writes. Later writes fail.
func (s *Store) Close() error {
	s.close.Do(func() {
		close(s.quit)
		<-s.ended
		s.copies.Wait()
		s.watch.notify()
		if s.turn != nil {
			s.turn <- struct{}{} // nobody reads any more
			s.writeSoon()
			s.closed = s.leave()
			return
		}
		s.closed = s.closeDBs()
	})
	return s.closed
}

func (s *Store) closeDBs() error {
	var errs []error
	s.mu.Lock()
	for query, stmt := range s.prepared {
		errs = append(errs, stmt.Close())
		delete(s.prepared, query)
	}
	s.mu.Unlock()
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	errs = append(errs, s.ledger.Close())
	if s.leases != nil {
		errs = append(errs, s.leases.close())
	}
	if err := errors.Join(errs...); err != nil {
		return storeError(s.path, "close", err)
	}
	return nil
}

var _ store.Store = (*Store)(nil)
