package qp_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/byteexpress/byteexpress/qp"
)

func TestCheckValues(t *testing.T) {
	good := qp.Attr{Port: 1, PathMTU: qp.MTU1024, RNRTimer: 31, AckTimeout: 31, RetryCount: 7, RNRRetry: 7, DestNum: 1<<24 - 1, SendPSN: qp.PSNMask}
	good.AV.SL, good.AV.FlowLabel = 15, 1<<20-1
	if err := good.CheckValues(^qp.AttrMask(0)); err != nil {
		t.Error(err)
	}
	for want, tt := range map[string]struct {
		mask   qp.AttrMask
		change func(*qp.Attr)
	}{
		"retry count is 8, must be 0 to 7":                {qp.MaskRetryCount, func(a *qp.Attr) { a.RetryCount = 8 }},
		"RNR retry is 9, must be 0 to 7":                  {qp.MaskRNRRetry, func(a *qp.Attr) { a.RNRRetry = 9 }},
		"timeout is 32, must be 0 to 31":                  {qp.MaskAckTimeout, func(a *qp.Attr) { a.AckTimeout = 32 }},
		"RNR timer is 32, must be 0 to 31":                {qp.MaskRNRTimer, func(a *qp.Attr) { a.RNRTimer = 32 }},
		"service level is 16, must be 0 to 15":            {qp.MaskAV, func(a *qp.Attr) { a.AV.SL = 16 }},
		"flow label is 1048576, must be 0 to 1048575":     {qp.MaskAV, func(a *qp.Attr) { a.AV.FlowLabel = 1 << 20 }},
		"path MTU in bytes is 0, must be 256 to 4096":     {qp.MaskPathMTU, func(a *qp.Attr) { a.PathMTU = 9 }},
		"port is 0, must be 1 to 255":                     {qp.MaskPort, func(a *qp.Attr) { a.Port = 0 }},
		"destination QP number is 16777216, must be 0 to": {qp.MaskDestNum, func(a *qp.Attr) { a.DestNum = 1 << 24 }},
		"receive PSN is 16777216, must be 0 to 16777215":  {qp.MaskRecvPSN, func(a *qp.Attr) { a.RecvPSN = 1 << 24 }},
		"source path bits is 128, must be 0 to 127":       {qp.MaskAV, func(a *qp.Attr) { a.AV.SrcPathBits = 128 }},
	} {
		a := good
		tt.change(&a)
		err := a.CheckValues(tt.mask)
		var v *qp.ValueError
		if !errors.As(err, &v) || !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if err := a.CheckValues(qp.MaskState); err != nil {
			t.Errorf("not asked for: %v", err)
		}
	}
}
