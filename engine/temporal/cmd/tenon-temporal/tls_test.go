package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
)

const serverName = "temporal.example"

// authority signs certificates and writes them into a folder.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.issue(t, "ca")
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name+".pem") }

// issue writes NAME.pem and NAME.key.pem. The first certificate signs itself and all others.
func (a *authority) issue(t *testing.T, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{serverName},
		BasicConstraintsValid: true, IsCA: a.cert == nil,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if a.cert == nil {
		a.cert, a.key = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{a.path(name): {Type: "CERTIFICATE", Bytes: der},
		a.path(name + ".key"): {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// proxy ends TLS in front of a server and passes the bytes of HTTP/2 on. It takes only clients with a certificate of
// the authority.
func proxy(t *testing.T, a *authority, server string) (address string) {
	t.Helper()
	a.issue(t, "server")
	pair, err := tls.LoadX509KeyPair(a.path("server"), a.path("server.key"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	text, err := os.ReadFile(a.path("ca"))
	if err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatal("the certificate of the authority", err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool,
		ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		work.Wait()
	})
	work.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return // closed
			}
			work.Go(func() { pass(in, server) })
		}
	})
	return l.Addr().String()
}

func pass(in net.Conn, server string) {
	defer in.Close()
	out, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer out.Close()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(out, in)
		_ = out.Close() // ends the other direction
	})
	_, _ = io.Copy(in, out)
	_ = in.Close()
	both.Wait()
}

// startServer starts Temporal's test server, which .ci/temporal.sh has fetched.
func startServer(t *testing.T) (address string) {
	t.Helper()
	path := os.Getenv("TENON_TEMPORAL_SERVER")
	if path == "" || os.Getenv("TENON_TEMPORAL_KIND") != "test" {
		t.Skip("TENON_TEMPORAL_SERVER is not the test server: make temporal sets it")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	cmd := exec.Command(path, fmt.Sprint(port))
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	address = fmt.Sprintf("127.0.0.1:%d", port)
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		c, err := open(t.Context(), host.ClusterConfig{Temporal: config.Temporal{Address: address}})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Ready(t.Context())
		_ = c.Close()
		if err == nil {
			return address
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// TestTLS connects to Temporal's test server through a proxy that ends TLS, as a configuration describes it.
func TestTLS(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	address := proxy(t, a, startServer(t))
	a.issue(t, "client")
	other.issue(t, "client")
	right := config.Temporal{Address: address, CA: a.path("ca"), Cert: a.path("client"), Key: a.path("client.key"),
		ServerName: serverName}
	for name, c := range map[string]struct {
		change func(*config.Temporal)
		code   tenon.Code
	}{
		"right":           {func(*config.Temporal) {}, ""},
		"plain":           {func(c *config.Temporal) { *c = config.Temporal{Address: address} }, tenon.CodeUnreachable},
		"other authority": {func(c *config.Temporal) { c.CA = other.path("ca") }, tenon.CodeUnreachable},
		"no certificate":  {func(c *config.Temporal) { c.Cert, c.Key = "", "" }, tenon.CodeUnreachable},
		"other certificate": {func(c *config.Temporal) { c.Cert, c.Key = other.path("client"), other.path("client.key") },
			tenon.CodeUnreachable},
		"other name": {func(c *config.Temporal) { c.ServerName = "other.example" }, tenon.CodeUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			conf := right
			c.change(&conf)
			cluster, err := open(t.Context(), host.ClusterConfig{Temporal: conf})
			if err != nil {
				t.Fatal(err)
			}
			err = cluster.Ready(t.Context())
			_ = cluster.Close()
			if tenon.ErrorCode(err) != c.code {
				t.Errorf("error %v, want code %q", err, c.code)
			}
			if err != nil && !strings.Contains(err.Error(), address) {
				t.Errorf("the error does not name the address: %v", err)
			}
		})
	}
}

// TestTLS_files opens configurations whose files cannot be used.
func TestTLS_files(t *testing.T) {
	a := newAuthority(t)
	for name, c := range map[string]struct {
		conf config.Temporal
		want string
	}{
		"no authority":  {config.Temporal{CA: a.path("none")}, "engine.temporal.ca cannot be read"},
		"not PEM":       {config.Temporal{CA: os.Args[0]}, "no certificate in PEM form"},
		"key of others": {config.Temporal{Cert: a.path("ca"), Key: a.path("ca")}, "engine.temporal.cert"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t.Context(), host.ClusterConfig{Temporal: c.conf})
			if tenon.ErrorCode(err) != tenon.CodeConfig || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
