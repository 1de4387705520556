//go:build linux

package mlx5_test

import "testing"

// The tests that every kernel device has to pass: package kdevtest.

func TestOpcodes(t *testing.T)            { rig.Opcodes(t) }
func TestSegments(t *testing.T)           { rig.Segments(t) }
func TestInline(t *testing.T)             { rig.Inline(t) }
func TestAtomics(t *testing.T)            { rig.Atomics(t) }
func TestSelectiveSignaling(t *testing.T) { rig.SelectiveSignaling(t) }
func TestQueueFull(t *testing.T)          { rig.QueueFull(t) }
func TestMessageTooLong(t *testing.T)     { rig.MessageTooLong(t) }
func TestNoAllocations(t *testing.T)      { rig.NoAllocations(t) }

func TestArmAndWait(t *testing.T)        { rig.ArmAndWait(t) }
func TestSolicited(t *testing.T)         { rig.Solicited(t) }
func TestWakeAndCancel(t *testing.T)     { rig.WakeAndCancel(t) }
func TestCloseWhileWaiting(t *testing.T) { rig.CloseWhileWaiting(t) }

func TestBadRKey(t *testing.T)          { rig.BadRKey(t) }
func TestUnequalMTU(t *testing.T)       { rig.UnequalMTU(t) }
func TestUsableGID(t *testing.T)        { rig.UsableGID(t) }
func TestOutOfBounds(t *testing.T)      { rig.OutOfBounds(t) }
func TestBadLKey(t *testing.T)          { rig.BadLKey(t) }
func TestReceiveTooSmall(t *testing.T)  { rig.ReceiveTooSmall(t) }
func TestRNRRetryExceeded(t *testing.T) { rig.RNRRetryExceeded(t) }
func TestRetryExceeded(t *testing.T)    { rig.RetryExceeded(t) }
func TestFlush(t *testing.T)            { rig.Flush(t) }
func TestResetAndReuse(t *testing.T)    { rig.ResetAndReuse(t) }
func TestOverflow(t *testing.T)         { rig.Overflow(t) }
func TestCloseOrder(t *testing.T)       { rig.CloseOrder(t) }
func TestRegistration(t *testing.T)     { rig.Registration(t) }
func TestNoEvent(t *testing.T)          { rig.NoEvent(t) }
func TestRefusedCreation(t *testing.T)  { rig.RefusedCreation(t) }

func TestQuery(t *testing.T)         { rig.Query(t) }
func TestModifyRefused(t *testing.T) { rig.ModifyRefused(t) }
func TestDrain(t *testing.T)         { rig.Drain(t) }
func TestLarge(t *testing.T)         { rig.Large(t) }

func TestManyOnOneCQ(t *testing.T)          { rig.ManyOnOneCQ(t) }
func TestManyMadeAndDestroyed(t *testing.T) { rig.ManyMadeAndDestroyed(t) }

func TestResize(t *testing.T)       { rig.Resize(t) }
func TestResizeAtWork(t *testing.T) { rig.ResizeAtWork(t) }

func TestSRQMessages(t *testing.T)      { rig.SRQMessages(t) }
func TestSRQFull(t *testing.T)          { rig.SRQFull(t) }
func TestSRQLimit(t *testing.T)         { rig.SRQLimit(t) }
func TestSRQEmpty(t *testing.T)         { rig.SRQEmpty(t) }
func TestSRQSurvivesQP(t *testing.T)    { rig.SRQSurvivesQP(t) }
func TestSRQCloseOrder(t *testing.T)    { rig.SRQCloseOrder(t) }
func TestSRQNoAllocations(t *testing.T) { rig.SRQNoAllocations(t) }

func TestWindows(t *testing.T)        { rig.Windows(t) }
func TestWindowRefusals(t *testing.T) { rig.WindowRefusals(t) }
func TestBadBinds(t *testing.T)       { rig.BadBinds(t) }
func TestWindowLife(t *testing.T)     { rig.WindowLife(t) }
func TestReregister(t *testing.T)     { rig.Reregister(t) }
func TestDMABuf(t *testing.T)         { rig.DMABuf(t) }
func TestAdvise(t *testing.T)         { rig.Advise(t) }
func TestExec(t *testing.T)           { rig.Exec(t) }
