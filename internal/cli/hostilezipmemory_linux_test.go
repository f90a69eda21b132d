package cli

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tenonhq/tenon/internal/clitest"
	"github.com/tenonhq/tenon/internal/longtest"
	"github.com/tenonhq/tenon/internal/safezip/ziptest"
	"github.com/tenonhq/tenon/workflow"
)

// peakSource is a program that runs a command and prints the command's peak resident memory in KiB. The peak of a child
// process includes the pages of its parent before exec, so the parent must be small. The test's own process is too
// large.
const peakSource = `package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

func main() {
	c := exec.Command(os.Args[1], os.Args[2:]...)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Run(); c.ProcessState == nil {
		panic(err)
	}
	fmt.Println(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
}
`

// peakMeter measures commands.
type peakMeter struct {
	t           *testing.T
	peak, tenon string
	idle        int // KiB of tenon version
}

// maxPeak is the promised limit: KiB more than an idle process.
const maxPeak = 64 << 10

func newPeakMeter(t *testing.T) *peakMeter {
	t.Helper()
	m := &peakMeter{t: t, peak: filepath.Join(t.TempDir(), "peak"), tenon: clitest.Build(t, filepath.Join("..", ".."), "./cmd/tenon")}
	source := m.peak + ".go"
	if err := os.WriteFile(source, []byte(peakSource), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := exec.Command("go", "build", "-o", m.peak, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	m.idle, _ = m.run(t, "version")
	if m.idle < 1<<10 {
		t.Fatalf("an idle process takes %d KiB", m.idle)
	}
	return m
}

func (m *peakMeter) run(t *testing.T, args ...string) (kib int, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), m.peak, append([]string{m.tenon}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	kib, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	return kib, errs.String()
}

// below runs a command and checks its peak memory. On a busy machine, the garbage collector of a short process runs
// late, so the lowest peak of eight runs counts. args returns the arguments for a path that does not exist.
func (m *peakMeter) below(t *testing.T, args func(out string) []string) {
	t.Helper()
	for left := 7; ; left-- {
		list := args(filepath.Join(t.TempDir(), "new"))
		kib, text := m.run(t, list...)
		if kib-m.idle <= maxPeak {
			return
		}
		if left == 0 {
			t.Errorf("%d KiB, %d above an idle process: tenon %s\n%s", kib, kib-m.idle, strings.Join(list, " "), text)
			return
		}
	}
}

// TestHostileZipMemory measures the peak memory of processes that open hostile archives, and valid archives of the
// largest permitted size. It measures a quarter of the archives, or all of them with TENON_HOSTILE=all (make hostile).
func TestHostileZipMemory(t *testing.T) {
	longtest.Skip(t)
	m := newPeakMeter(t)
	dir := aloneForZips(t)
	t.Setenv("GOGC", "")
	packs := measuredZips(append(largeZips(ziptest.Hostile(workflow.FileName, packedFlow)), heavyPacks(t)...))
	bundles := measuredZips(largeZips(ziptest.Hostile("table.arrow", zipToolTable(t))))
	for _, kind := range []struct {
		doors []zipDoor
		cases []ziptest.Case
		ext   string
	}{{packDoors, packs, ".zip"}, {bundleDoors, bundles, ".tooltable"}} {
		for i, c := range kind.cases {
			file := filepath.Join(dir, fmt.Sprint(i, kind.ext))
			if err := os.WriteFile(file, c.Zip, 0o600); err != nil {
				t.Fatal(err)
			}
			for _, door := range kind.doors {
				if c.Want == "" && (door.name == "run" || door.name == "pack") {
					continue // these commands write the valid archive again
				}
				t.Run("SEC-F14_peak_"+door.name+kind.ext+"_"+c.Name, func(t *testing.T) {
					m.below(t, func(out string) []string { return door.args(file, out) })
				})
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range packs {
		file := filepath.Join(dir, "b.tooltable")
		t.Run("SEC-F14_peak_inside_a_bundle_"+c.Name, func(t *testing.T) {
			writeBundle(t, file, c.Zip)
			m.below(t, func(string) []string { return []string{"tables", "check", file} })
			m.below(t, func(out string) []string {
				return []string{"tables", "concat", file, "--out", out + ".tooltable"}
			})
			m.below(t, func(out string) []string {
				return []string{"tools", "list", "-c", besideZip(file, out, "tool_tables: [%s]"), "--trust"}
			})
		})
	}
}

// largeZip is a large archive that is made only if it is measured, because making it takes longer than opening it.
type largeZip struct {
	ziptest.Case
	make func() []byte // nil if Zip is set
}

// largeZips returns the large archives among the cases.
func largeZips(cases []ziptest.Case) (list []largeZip) {
	for _, c := range cases {
		if c.Large {
			list = append(list, largeZip{Case: c})
		}
	}
	return list
}

// measuredZips makes all archives, or a quarter of them.
func measuredZips(list []largeZip) (measured []ziptest.Case) {
	for n, c := range list {
		if n%4 > 0 && os.Getenv("TENON_HOSTILE") != "all" {
			continue
		}
		if c.make != nil {
			c.Zip = c.make()
		}
		measured = append(measured, c.Case)
	}
	return measured
}

// heavyPacks are valid workflow archives that are as large as the limits permit.
func heavyPacks(t *testing.T) []largeZip {
	t.Helper()
	flow := func(step string) string {
		return "kind: workflow\nversion: 1\nname: packed\ndescription: d\nsteps: [{id: t, table: {" + step + "}}]\n"
	}
	zeros := strings.NewReader("")
	pack := func(name string, method uint16, flow, file string, content io.Reader) largeZip {
		return largeZip{ziptest.Case{Name: name}, func() []byte {
			var b bytes.Buffer
			z := zip.NewWriter(&b)
			add := func(name string, method uint16, r io.Reader) {
				w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
				if err == nil {
					_, err = io.Copy(w, r)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			add(workflow.FileName, zip.Deflate, strings.NewReader(flow))
			add(file, method, content)
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}}
	}
	lines := func(head, line string, n int) io.Reader {
		return io.MultiReader(strings.NewReader(head), &repeated{line: []byte(line), left: n})
	}
	return []largeZip{
		pack("63 MiB stored", zip.Store, packedFlow, "data/x", lines("", "0123456789abcdef", 63<<16)),
		pack("250 MiB of CSV", zip.Deflate, flow("csv: a.csv"), "a.csv", lines("a,b\n", "1,2\n", 62<<20)),
		pack("a CSV line of 200 MiB", zip.Deflate, flow("csv: a.csv"), "a.csv", lines("\"", "xxxxxxxx", 25<<20)),
		pack("200 MiB of Arrow", zip.Deflate, flow("arrow: a.arrow"), "a.arrow", lines("ARROW1\x00\x00", "\x00\x00\x00\x00\x00\x00\x00\x00", 25<<20)),
		pack("4 MiB of YAML values", zip.Deflate, "x: ["+strings.Repeat("a,", 2_000_000)+"a]\n", "data/x", zeros),
		pack("YAML rows", zip.Deflate, flow("rows: ["+strings.Repeat("{a: 1},", 500_000)+"{a: 1}]"), "data/x", zeros),
		pack("YAML rows below the limit", zip.Deflate, flow("rows: ["+strings.Repeat("{a: 1},", 9900)+"{a: 1}]"), "data/x", zeros),
		pack("YAML aliases", zip.Deflate, "x: &x ["+strings.Repeat("a,", 1000)+"a]\ny: ["+strings.Repeat("*x,", 9000)+"*x]\n", "data/x", zeros),
		pack("YAML text", zip.Deflate, strings.Replace(packedFlow, "description: d", "description: '"+strings.Repeat("x", 4_000_000)+"'", 1), "data/x", zeros),
	}
}

// repeated is a reader that repeats a line a number of times.
type repeated struct {
	line []byte
	left int
	rest []byte
}

func (r *repeated) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		if len(r.rest) == 0 {
			if r.left == 0 {
				break
			}
			r.left--
			r.rest = r.line
		}
		k := copy(b[n:], r.rest)
		n, r.rest = n+k, r.rest[k:]
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
