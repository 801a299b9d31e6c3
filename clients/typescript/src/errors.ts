/**
 * What can go wrong. One class for what a program may want to tell apart, `code` for the rest:
 *
 *     LoxodonError
 *       NoAnswerError                 no answer came: refused, lost, or none in time
 *         TimedOutError
 *       ApiError                      the service refused: message, code, status, field, requestId
 *         InvalidInputError           invalid_input and whatever else a request can have wrong
 *           ScopeMissingError         scope_error: name a user_id, agent_id or run_id
 *           TooLargeError             too_large
 *           PiiRejectedError          pii_rejected
 *         UnauthenticatedError        unauthenticated
 *         ForbiddenError              forbidden
 *         NotFoundError               not_found
 *         ConflictError               conflict
 *           IdempotencyMismatchError  idempotency_mismatch
 *           PreconditionFailedError   precondition_failed: it changed since it was read
 *         RateLimitedError            429: `retryAfterMs` says when to come again
 *         UnavailableError            503: it was tried several times
 *           OutcomeUnknownError       outcome_unknown: written as a whole or not at all
 *           DeadlineExceededError     deadline_exceeded: nothing was written
 *         InternalError               500
 */
import type { components } from "./schema.js";

export type ErrorCode = components["schemas"]["ErrorCode"];
/** The body of an error, as the service sends it. */
export type Problem = components["schemas"]["Problem"];

export class LoxodonError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** No answer came. `sent`: whether the request may have reached the service. */
export class NoAnswerError extends LoxodonError {
  constructor(
    message: string,
    readonly sent: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** No answer came in time. */
export class TimedOutError extends NoAnswerError {}

/** The service answered with an error. `message` is its own sentence. */
export class ApiError extends LoxodonError {
  /** For programs; a newer service may have codes that this list does not. */
  readonly code: ErrorCode | (string & {});
  /** The part of the request to blame; null where none is. */
  readonly field: string | null;
  /** What the service's log has it under; null where a proxy answered. */
  readonly requestId: string | null;

  constructor(
    readonly status: number,
    /** The whole answer; of a proxy's answer what could be read. */
    readonly problem: Partial<Problem>,
    /** How long the service asks to wait; null where it does not say. */
    readonly retryAfterMs: number | null = null,
  ) {
    super(problem.detail ?? `The answer has status ${status}.`);
    this.code = problem.code ?? "http_error";
    this.field = problem.field ?? null;
    this.requestId = problem.request_id ?? null;
  }

  /** The sentence of the service: the same as `message`. */
  get sentence(): string {
    return this.message;
  }
}

export class InvalidInputError extends ApiError {}
export class ScopeMissingError extends InvalidInputError {}
export class TooLargeError extends InvalidInputError {}
export class PiiRejectedError extends InvalidInputError {}
export class UnauthenticatedError extends ApiError {}
export class ForbiddenError extends ApiError {}
export class NotFoundError extends ApiError {}
export class ConflictError extends ApiError {}
export class IdempotencyMismatchError extends ConflictError {}
export class PreconditionFailedError extends ConflictError {}
export class RateLimitedError extends ApiError {}
export class UnavailableError extends ApiError {}
export class OutcomeUnknownError extends UnavailableError {}
export class DeadlineExceededError extends UnavailableError {}
export class InternalError extends ApiError {}

const BY_CODE: Partial<Record<string, typeof ApiError>> = {
  scope_error: ScopeMissingError,
  too_large: TooLargeError,
  pii_rejected: PiiRejectedError,
  idempotency_mismatch: IdempotencyMismatchError,
  outcome_unknown: OutcomeUnknownError,
  deadline_exceeded: DeadlineExceededError,
} satisfies Partial<Record<ErrorCode, typeof ApiError>>;

/** For the other codes, for those of a newer service, and for answers of a proxy. */
const BY_STATUS: Record<number, typeof ApiError> = {
  400: InvalidInputError,
  401: UnauthenticatedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  412: PreconditionFailedError,
  413: TooLargeError,
  422: InvalidInputError,
  429: RateLimitedError,
  500: InternalError,
  502: UnavailableError,
  503: UnavailableError,
  504: UnavailableError,
};

/** The error that an answer means, also where it is not the service's own. */
export function errorOf(status: number, body: string, retryAfterMs: number | null): ApiError {
  let problem: Partial<Problem>;
  try {
    const read: unknown = JSON.parse(body);
    problem = typeof read === "object" && read !== null ? read : { detail: body.slice(0, 300) };
  } catch {
    problem = { detail: body.trim().slice(0, 300) || `The answer has status ${status} and no text.` };
  }
  const kind = BY_CODE[problem.code ?? ""] ?? BY_STATUS[status] ?? ApiError;
  return new kind(status, problem, retryAfterMs);
}
