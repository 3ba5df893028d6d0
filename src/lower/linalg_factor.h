// Factorizations that ONNX has no operator for, each once, as a Loop over columns: det, inv, solve, slogdet and the like are made of them.
// Matrices are the last two dims; the others, of any number and size, are batch. Sizes may be 0 and dynamic.
//
// One step works on the whole batch at once: what belongs to rows above or columns before the step is kept by Where, so NaN and
// infinities of one place do not reach another that LAPACK would not touch.
#pragma once

#include "lower/network.h"

namespace pt2onnx {

// ---- Pieces ------------------------------------------------------------------------------------------------------------------------
Val Known(Onnx& b, Val x, const DimVec& shape);       // x, whose shape is this: where inference of dynamic dims gives up
Val Transposed(Onnx& b, Val x);                       // the last two dims change places
DimVec BatchDims(Val x);                              // all dims but the last two
Val RowNumbers(Onnx& b, SymExpr rows);                // [rows, 1], int64
Val ColumnNumbers(Onnx& b, SymExpr columns);          // [1, columns], int64
Val ColumnAt(Onnx& b, Val x, Val i);                  // [..., rows, 1]; i: int64 of rank 0
Val RowAt(Onnx& b, Val x, Val i);                     // [..., 1, columns]
Val DiagonalOf(Onnx& b, Val x);                       // [..., min(rows, columns)]
Val UnitMatrix(Onnx& b, SymExpr rows, SymExpr columns, DType dtype);
Val Lower(Onnx& b, Val x, int64_t diagonal = 0);      // the other elements are 0
Val Upper(Onnx& b, Val x, int64_t diagonal = 0);
Val ToBatch(Onnx& b, Val x, const DimVec& batch);     // x expanded to these batch dims
// int32 [...]: 1 + the first place along the last dim where `bad` is true, 0 if none is. LAPACK's info.
Val InfoOf(Onnx& b, Val bad);
// Steps 0 .. count - 1 on carried values of fixed types.
Vals Steps(Onnx& b, SymExpr count, const Vals& carried, const std::function<Vals(Val i, const Vals&)>& step);

// ---- Triangular systems and LU --------------------------------------------------------------------------------------------------------
// X of A X = rhs, A's upper or lower triangle being read, with a diagonal of ones if `unit`. Batch dims are broadcast.
Val SolveTriangular(Onnx& b, Val a, Val rhs, bool upper, bool unit);

struct Lu {
  Val lu;      // [..., m, n]: L below the diagonal, U on and above it
  Val pivots;  // [..., min(m, n)], int64 from 0: the row that step i exchanged with row i
  Val perm;    // [..., m], int64: row i of L U is row perm[i] of A
};
Lu LuFactor(Onnx& b, Val a);
Val PermOf(Onnx& b, Val pivots, SymExpr rows);  // of pivots from 0
// X of A X = rhs; adjoint: of A^T X = rhs
Val LuSolve(Onnx& b, Val lu, Val perm, Val rhs, bool adjoint = false);
struct Solution {
  Val x, lu;
};
Solution Solve(Onnx& b, Val a, Val rhs, bool left = true);  // left: A X = rhs, else X A = rhs
Solution Inverse(Onnx& b, Val a);

// ---- Others ---------------------------------------------------------------------------------------------------------------------------
// L of A = L L^T, from A's lower triangle. Where A is not positive definite the diagonal has NaN from there on.
Val Cholesky(Onnx& b, Val a);

struct Reflectors {
  Val a;    // [..., m, n]: R on and above the diagonal, below it the vectors v, which have 1 on it
  Val tau;  // [..., min(m, n)]: Q is the product of the matrices 1 - tau v v^T
};
Reflectors Householder(Onnx& b, Val a);
// Q x, or Q^T x
Val Reflect(Onnx& b, Val a, Val tau, Val x, bool transposed);
struct Qr {
  Val q, r;
};
Qr QrFactor(Onnx& b, Val a, bool complete = false);

Val SingularValues(Onnx& b, Val a);  // [..., min(m, n)], descending

}  // namespace pt2onnx
