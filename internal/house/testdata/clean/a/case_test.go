package a_test

import "testing"

// TestCase is case C01.
func TestCase(t *testing.T) {}

// TestOther is of cases C01 and C02.
func TestOther(t *testing.T) {}

// TestAtomics is of no case, and RC01 is none.
func TestAtomics(t *testing.T) {}
