package temporal

import (
	"bytes"
	"testing"

	"go.temporal.io/sdk/converter"

	"github.com/tenonhq/tenon"
)

// TestCodec encrypts a payload, and refuses it with another key, cut off and changed.
func TestCodec(t *testing.T) {
	c, err := newCodec(bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	other, err := newCodec(bytes.Repeat([]byte{2}, 32))
	if err != nil {
		t.Fatal(err)
	}
	with := func(c codec) converter.DataConverter {
		return converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c)
	}
	p, err := with(c).ToPayload(input{Run: "run_secret"})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(p.Data, []byte("run_secret")) {
		t.Error("the payload is plain")
	}
	var in input
	if err := with(c).FromPayload(p, &in); err != nil || in.Run != "run_secret" {
		t.Errorf("got %+v, %v", in, err)
	}
	if err := with(other).FromPayload(p, &in); err == nil {
		t.Error("another key decrypts")
	}
	plain, err := converter.GetDefaultDataConverter().ToPayload(input{Run: "old"})
	if err != nil {
		t.Fatal(err)
	}
	if err := with(c).FromPayload(plain, &in); err != nil || in.Run != "old" {
		t.Errorf("a payload from before the key: %+v, %v", in, err)
	}
	p.Data[len(p.Data)-1]++
	if err := with(c).FromPayload(p, &in); err == nil {
		t.Error("a changed payload decrypts")
	}
	p.Data = p.Data[:5]
	if err := with(c).FromPayload(p, &in); err == nil {
		t.Error("a short payload decrypts")
	}
	if _, err := newCodec([]byte("short")); tenon.ErrorCode(err) != tenon.CodeConfig {
		t.Errorf("a short key: %v", err)
	}
}
