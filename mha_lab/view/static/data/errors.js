/** What a source of maps could not give, as a sentence for the person who looks. */
export class SourceError extends Error {}
