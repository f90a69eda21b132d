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

	"modernc.org/sqlite"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store"
)

// Config says where the store lies.
type Config struct {
	Path   string       // of the file; its directory is made if it is missing
	Logger *slog.Logger // nil: discard
	Now    func() time.Time
	// Brief says that the process ends soon after Close, as that of a command line
	// does. One connection then reads and writes, and Close leaves it to the
	// system once everything is written.
	Brief bool
	// Reading says that the caller only looks. A store that is there and cannot be
	// written is opened all the same then, and every write ends with code store.
	Reading bool
}

// Store is an open store. It is safe for concurrent use.
type Store struct {
	path string
	log  *slog.Logger
	now  func() time.Time

	leases *leases
	write  *sql.DB // one connection, the writer's
	read   *sql.DB
	writer *writer
	conn   *sql.Conn     // the writer's
	turn   chan struct{} // whose turn it is to use conn; nil: the writer's, always

	mu       sync.Mutex
	prepared map[string]*sql.Stmt // for reading

	ops    chan *op
	pool   sync.Pool     // of *op
	packs  sync.Pool     // of *[]byte: packed events
	quit   chan struct{} // closed: no more writes
	ended  chan struct{} // closed: the writer has ended
	full   chan struct{} // it is time for a checkpoint
	copies sync.WaitGroup
	close  sync.Once
	closed error
	watch  watch
	soon   []*op // of a brief store: go with the next write; used by whose turn it is
}

// readers is how many reads may run at a time; more of them wait.
const readers = 4

// Open opens a store, or makes an empty one. The file is readable by its owner
// only (mode 0600). Errors: invalid (no path), store (with what to do).
func Open(ctx context.Context, c Config) (*Store, error) {
	s, err := open(ctx, c, migrations, true)
	if err != nil && c.Reading && tenon.ErrorCode(err) == tenon.CodeStore {
		if r, rerr := openReading(ctx, c); rerr == nil {
			r.log.Warn("the store cannot be written; it is shown as it is", "path", r.path)
			return r, nil
		} // err says more
	}
	return s, err
}

// open opens a store that has seen the given migrations. Full says that these
// are all of ours, so that a new store may begin as a copy of an empty one.
func open(ctx context.Context, c Config, steps []string, full bool) (_ *Store, err error) {
	if c.Path == "" {
		return nil, tenon.Errorf(tenon.CodeInvalid, "store: no path given")
	}
	path, err := filepath.Abs(c.Path)
	if err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "store %s: %w", c.Path, err)
	}
	s := &Store{
		path: path, log: c.Logger, now: c.Now,
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
	if s.leases, err = openLeases(path + locksEnd); err != nil {
		return nil, tenon.Errorf(tenon.CodeStore, "store %s: %w; choose another place with --home", path, err)
	}
	defer func() {
		if err != nil {
			_ = s.closeDBs() // err says more
		}
	}()
	if s.write, err = connect(path, 1, "foreign_keys(1)", "synchronous(FULL)", "secure_delete(1)", fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages), "journal_size_limit(67108864)", "journal_mode(WAL)"); err != nil {
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
	if c.Brief {
		s.turn = make(chan struct{}, 1)
	}
	s.writer = newWriter(s, s.conn)
	go s.writer.loop()
	s.copies.Go(s.checkpoint)
	return s, nil
}

// locksEnd follows the store's name in that of its leases.
const locksEnd = "-locks"

// prepareFiles makes the folder and the file itself.
func (s *Store) prepareFiles(full bool) error {
	err := os.MkdirAll(filepath.Dir(s.path), 0o700)
	if err == nil {
		err = makeFile(s.path, full)
	}
	if err != nil {
		return tenon.Errorf(tenon.CodeStore, "store %s: %w; choose another place with --home", s.path, err)
	}
	return nil
}

// firstConn opens the writer's connection. Turning on WAL in a new file does
// not wait for other processes by itself.
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
	p := filepath.ToSlash(path)
	if !strings.HasPrefix(p, "/") {
		p = "/" + p // C:/…
	}
	c, err := sqlite.NewConnector((&url.URL{Scheme: "file", Path: p, RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.path }

// Close waits for the writes that are under way. Later ones fail.
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
	if s.leases != nil {
		errs = append(errs, s.leases.close())
	}
	if err := errors.Join(errs...); err != nil {
		return storeError(s.path, "close", err)
	}
	return nil
}

var _ store.Store = (*Store)(nil)
