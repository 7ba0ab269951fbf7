"""What K members predict for N items: probabilities [N, K, C], checked and named."""
