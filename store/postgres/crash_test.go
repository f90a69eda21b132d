//go:build unix

package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/store/signed"
	"github.com/tenonhq/tenon/store/storetest"

	"github.com/tenonhq/tenon/store"
)

const envCrashes = "TENON_PG_CRASHES"

// TestServerCrash kills PostgreSQL with SIGKILL while two replicas write, and restarts it. Each write is stored exactly
// once.
func TestServerCrash(t *testing.T) {
	c := newCluster(t)
	conf := Config{DSN: c.dsn(), Lease: time.Second}
	l := newLoad(t, mustOpen(t, conf), mustOpen(t, conf))
	for range times(t, envCrashes, 3) {
		l.moves(t)
		c.kill()
		c.start(t)
	}
	l.moves(t)
	l.check(t)
}

// TestFailover uses a standby that was made by pg_basebackup and that confirms each commit. A store refuses to open on
// the standby. The primary is killed under load and the standby is promoted. The replicas continue there, and no
// acknowledged write is lost.
func TestFailover(t *testing.T) {
	primary, standby := newCluster(t, "wal_level=replica"), newFolder(t)
	standby.run(t, "pg_basebackup", "-D", standby.data(), "-h", primary.dir, "-U", "postgres", "-R", "-X", "stream",
		"-c", "fast", "--no-sync")
	standby.start(t, "hot_standby=on")
	_, err := Open(t.Context(), Config{DSN: standby.dsn()})
	if tenon.ErrorCode(err) != tenon.CodeStore || !isOne(err, "read-only standby; connect to the primary") {
		t.Errorf("a store on the standby: %v", err)
	}
	primary.exec(t, "ALTER SYSTEM SET synchronous_standby_names = '*'")
	primary.exec(t, "SELECT pg_reload_conf()")
	conf := Config{DSN: "host=" + primary.dir + "," + standby.dir + " port=5432,5432 user=postgres dbname=postgres " +
		"target_session_attrs=read-write", Lease: 2 * time.Second}
	l := newLoad(t, mustOpen(t, conf), mustOpen(t, conf))
	l.moves(t)
	primary.kill()
	standby.run(t, "pg_ctl", "-D", standby.data(), "promote", "-w")
	l.moves(t)
	l.check(t)
}

// newPooler starts pgbouncer in transaction mode in front of a server, and returns a DSN that connects through it.
func newPooler(t *testing.T, server string) string {
	t.Helper()
	bouncer := os.Getenv("TENON_PGBOUNCER")
	if bouncer == "" {
		t.Skip("TENON_PGBOUNCER is not set: make postgres sets it")
	}
	c := newFolder(t)
	conf := filepath.Join(c.dir, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
postgres = host=%s dbname=postgres user=postgres
[pgbouncer]
listen_addr =
unix_socket_dir = %s
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 500
`, server, c.dir)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	c.bin = filepath.Dir(bouncer)
	cmd := c.command(filepath.Base(bouncer), "-q", conf)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // fails if it has ended
		_ = cmd.Wait()         // killed
	})
	dsn := "host=" + c.dir + " port=6432 user=postgres dbname=postgres"
	wait(t, "pgbouncer answers", func() bool {
		_, err := os.Stat(filepath.Join(c.dir, ".s.PGSQL.6432"))
		return err == nil
	})
	return dsn
}

// socketOf returns the folder of the server's socket.
func socketOf(t *testing.T) string {
	t.Helper()
	conf, err := connConfig(server(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	return conf.Host
}

// TestPooler runs the suite of stores through pgbouncer in transaction mode, in which each transaction can use another
// connection. Only the connection that listens for notifications is direct.
func TestPooler(t *testing.T) {
	dsn := newPooler(t, socketOf(t))
	t.Run("store", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) func() store.Store {
			c := place(t)
			c.Direct, c.DSN = c.DSN, dsn
			return func() store.Store { return mustOpen(t, c) }
		})
	})
	t.Run("load", func(t *testing.T) {
		c := place(t)
		c.Direct, c.DSN, c.Lease = c.DSN, dsn, time.Second
		a := mustOpen(t, c)
		f := findings(t, a)["pooler"]
		if f.Err != nil || f.Text == "no pooler" {
			t.Errorf("the pooler is not recognized: %+v", f)
		}
		l := newLoad(t, a, mustOpen(t, c))
		for range 3 {
			l.moves(t)
			admin(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE $1 AND pid <> pg_backend_pid()",
				"%"+c.Schema+"%")
		}
		l.moves(t)
		l.check(t)
		wantKnown(t, a, loadRun(0), true)
	})
}

// TestNotifyLost uses replicas whose listening connections receive nothing, because they are connected to another
// database. The replicas find changes and live text by polling.
func TestNotifyLost(t *testing.T) {
	c := place(t)
	c.Direct = c.DSN + " dbname=template1"
	a, b := mustOpen(t, c), mustOpen(t, c)
	wait(t, "the replicas listen", func() bool { return a.watch.hears.Load() && b.watch.hears.Load() })
	create(t, a, "r")
	for n := uint64(2); n < 4; n++ {
		changed := b.Changed(t.Context())
		if err := appendTo(t, a, "r", n); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
			t.Fatal("a change is never noticed without a notification")
		}
	}
	heard := make(chan string, 10)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.FollowLive(ctx, "r", func(e tenon.Event) { heard <- string(e.Data) })
	}()
	release, ok, err := a.Acquire("r")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	defer release()
	wait(t, "the owner finds the follower", func() bool {
		list, err := a.Followed(ctx)
		if err != nil || len(list) != 1 {
			return false
		}
		return a.PublishLive(ctx, []store.LiveEvents{{LiveFollower: list[0],
			Events: []tenon.Event{{Run: "r", Kind: "delta", Data: []byte(`"text"`)}}}}) == nil
	})
	select {
	case text := <-heard:
		if text != `"text"` {
			t.Errorf("heard %s", text)
		}
	case <-time.After(20 * time.Second):
		t.Error("live text never comes without a notification")
	}
	stop()
	<-done
}

// TestClockJump uses one replica whose clock is an hour fast, and one whose clock jumps back by two hours. Leases use
// the clock of the database, so neither replica loses one, and each write is stored exactly once.
func TestClockJump(t *testing.T) {
	conf := place(t)
	conf.Lease = time.Second
	key, err := signed.NewKey([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	conf.Key = key
	ahead, back := conf, conf
	ahead.Now = func() time.Time { return time.Now().Add(time.Hour) }
	jump := make(chan struct{})
	back.Now = func() time.Time {
		select {
		case <-jump:
			return time.Now().Add(-time.Hour)
		default:
			return time.Now().Add(time.Hour)
		}
	}
	a, b := mustOpen(t, ahead), mustOpen(t, back)
	l := newLoad(t, a, b)
	l.moves(t)
	close(jump)
	for range 3 {
		l.moves(t)
	}
	for i := range loadRuns {
		other := l.replicas[(i+1)%2]
		if _, ok, err := other.Acquire(loadRun(i)); err != nil || ok {
			t.Errorf("run %d: a live lease was given away: %v, %v", i, ok, err)
		}
	}
	l.check(t)
}
