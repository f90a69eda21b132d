package temporal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"

	common "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/tenonhq/tenon"
)

// encoding marks the payloads that a codec has encrypted.
const encoding = "binary/tenon-aes256gcm"

// codec encrypts payloads with AES-256-GCM. The nonce precedes the text.
type codec struct{ aead cipher.AEAD }

func newCodec(key []byte) (codec, error) {
	if len(key) != 32 {
		return codec{}, tenon.Errorf(tenon.CodeConfig, "engine.temporal.codec_key has %d bytes; it must have 32",
			len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return codec{}, tenon.Errorf(tenon.CodeConfig, "engine.temporal.codec_key: %w", err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return codec{}, tenon.Errorf(tenon.CodeConfig, "engine.temporal.codec_key: %w", err)
	}
	return codec{aead}, nil
}

// Encode implements [converter.PayloadCodec].
func (c codec) Encode(payloads []*common.Payload) ([]*common.Payload, error) {
	out := make([]*common.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeInternal, "a payload cannot be encoded: %w", err)
		}
		nonce := make([]byte, c.aead.NonceSize(), c.aead.NonceSize()+len(plain)+c.aead.Overhead())
		_, _ = rand.Read(nonce) // never fails
		out[i] = &common.Payload{Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encoding)},
			Data: c.aead.Seal(nonce, nonce, plain, nil)}
	}
	return out, nil
}

// Decode implements [converter.PayloadCodec]. It leaves payloads as they are that were written without a key.
func (c codec) Decode(payloads []*common.Payload) ([]*common.Payload, error) {
	out := make([]*common.Payload, len(payloads))
	for i, p := range payloads {
		if string(p.GetMetadata()[converter.MetadataEncoding]) != encoding {
			out[i] = p
			continue
		}
		n := c.aead.NonceSize()
		if len(p.GetData()) < n {
			return nil, tenon.Errorf(tenon.CodeInvalid, "an encrypted payload is too short")
		}
		plain, err := c.aead.Open(nil, p.Data[:n], p.Data[n:], nil)
		if err != nil {
			return nil, tenon.Errorf(tenon.CodeConfig, "a payload cannot be decrypted; "+
				"engine.temporal.codec_key differs from the key that it was written with")
		}
		out[i] = &common.Payload{}
		if err := proto.Unmarshal(plain, out[i]); err != nil {
			return nil, tenon.Errorf(tenon.CodeInvalid, "an encrypted payload is damaged: %w", err)
		}
	}
	return out, nil
}

var _ converter.PayloadCodec = codec{}
