package durable

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	Main()
	goleak.VerifyTestMain(m)
}

// TestSmall runs the measurements at a small scale to keep them working.
func TestSmall(t *testing.T) {
	if f, err := Steps(t.Context(), t.TempDir(), StepsConfig{Writers: 10, Steps: 5, Rounds: 1}); err != nil ||
		f.Ratio <= 0 {
		t.Errorf("steps: %+v, %v", f, err)
	}
	if d, err := Resume(t.Context(), t.TempDir(), 20); err != nil || d <= 0 {
		t.Errorf("resume: %v, %v", d, err)
	}
	if m := MemoryNow(); m.Live <= 0 {
		t.Errorf("memory: %+v", m)
	}
}

func BenchmarkP7_steps(b *testing.B) {
	for b.Loop() {
		f, err := Steps(b.Context(), b.TempDir(), StepsConfig{})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(f.Engine, "steps/s")
		b.ReportMetric(f.Bare, "inserts/s")
		b.ReportMetric(f.Ratio, "ratio")
	}
}

func BenchmarkP7_resume(b *testing.B) {
	for b.Loop() {
		d, err := Resume(b.Context(), b.TempDir(), 1000)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(d.Seconds(), "s")
	}
}
