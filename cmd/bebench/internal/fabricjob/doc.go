// Package fabricjob puts what a simulated network did into bebench's rows and
// charts.
package fabricjob
